"""What the runner makes of servers that are older, poorer or other than expected: a stub plays them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from bench.golden.process import golden
from bench.golden.script import Case, Script, Stream

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import ServerFacts, TrialPlan
from goodput.runner.errors import (
    RequestRefusedError,
    RequestsTooLongError,
    ServerGoneError,
    ServerMismatchError,
    TokensError,
)
from goodput.runner.load.target import Target
from goodput.runner.server import Server
from goodput.runner.snapshot import read
from goodput.runner.stop import Stop
from goodput.runner.tokens import Vocabulary, vocabulary
from goodput.runner.verify import verify
from goodput.runner.warmup import warm_up

Planned = Callable[..., TrialPlan]
COMPLETION = {"choices": [{"text": "a", "finish_reason": "length"}]}


@dataclass
class Stub:
    """Answers by path: (status, body). Whatever is not named is 404."""

    url: str = ""
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    seen: list[tuple[str, str | None]] = field(default_factory=list)

    @property
    def facts(self) -> ServerFacts:
        return ServerFacts(url=self.url, order=1)


@pytest.fixture
def stub() -> Iterator[Stub]:
    stub = Stub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            path = self.path.partition("?")[0]
            stub.seen.append((path, self.headers["Authorization"]))
            status, body = stub.answers.get(path, (404, {"detail": "Not Found"}))
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            """Keep the test's output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield stub
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def server(stub: Stub) -> Iterator[Server]:
    server = Server(stub.facts, model="toy/model")
    yield server
    server.close()


@pytest.fixture
def plan(planned: Planned, stub: Stub, loads: list[Load]) -> TrialPlan:
    plan = planned(stub.url, "file:///nowhere", loads)
    return plan.model_copy(update={"server": ServerFacts(url=stub.url, order=1, expects={"max_num_seqs": "64"})})


def test_a_server_that_only_completes_is_enough(stub: Stub, server: Server, plan: TrialPlan) -> None:
    stub.answers["/v1/completions"] = (200, COMPLETION)
    provenance = verify(server, plan)
    assert (provenance.engine_version, provenance.resolved, provenance.model) == (None, {}, "toy/model")
    assert not read(server.metrics).known
    assert server.reset_prefix_cache() is None


def test_what_it_says_becomes_provenance(stub: Stub, server: Server, plan: TrialPlan) -> None:
    system = {"torch_version": "2.13", "nvidia_gpu_models": " GPU 0: H100 ", "nvidia_driver_version": "580"}
    stub.answers |= {
        "/health": (200, b""),
        "/version": (200, {"version": "0.32.0"}),
        "/v1/models": (200, {"data": [{"id": "toy/model"}]}),
        "/server_info": (
            200,
            {"vllm_config": {"scheduler_config": {"max_num_seqs": 64, "x": None}}, "system_env": system},
        ),
        "/v1/completions": (200, COMPLETION),
    }
    provenance = verify(server, plan)
    assert (provenance.engine_version, provenance.torch, provenance.gpu) == ("0.32.0", "2.13", "GPU 0: H100")
    assert provenance.resolved == {"max_num_seqs": "64"}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"/v1/models": {"data": [{"id": "other"}]}}, "serves other, not toy/model"),
        ({"/server_info": {"vllm_config": {"scheduler_config": {"max_num_seqs": 32}}}}, "asked to be 64 and is 32"),
        ({"/server_info": {"vllm_config": {"model_config": {"revision": "abc"}}}}, "revision is abc, not def"),
    ],
)
def test_a_known_difference_is_a_mismatch(
    stub: Stub, server: Server, plan: TrialPlan, said: dict[str, object], words: str
) -> None:
    stub.answers |= {path: (200, answer) for path, answer in said.items()}
    stub.answers["/v1/completions"] = (200, COMPLETION)
    with pytest.raises(ServerMismatchError, match=words):
        verify(server, plan.model_copy(update={"model_revision": "def"}))
    assert "/v1/completions" not in [path for path, _ in stub.seen]


@pytest.mark.parametrize(
    "said",
    [
        {"/v1/models": {"data": [{"id": "toy/model", "max_model_len": 51}]}},
        {"/server_info": {"vllm_config": {"model_config": {"max_model_len": 51}}}},
    ],
)
def test_requests_that_cannot_fit_are_refused_before_any_is_sent(
    stub: Stub, server: Server, plan: TrialPlan, said: dict[str, object]
) -> None:
    stub.answers |= {path: (200, answer) for path, answer in said.items()}
    words = r"max_model_len of config toy max_num_seqs=64 is 51, too short for 32→20 \(52 tokens\): raise it, or"
    with pytest.raises(RequestsTooLongError, match=words):
        verify(server, plan)
    assert "/v1/completions" not in [path for path, _ in stub.seen]


def test_requests_that_just_fit_are_taken(stub: Stub, server: Server, plan: TrialPlan) -> None:
    stub.answers["/v1/models"] = (
        200,
        {"data": [{"id": "other", "max_model_len": 9}, {"id": "toy/model", "max_model_len": 52}]},
    )
    stub.answers["/v1/completions"] = (200, COMPLETION)
    assert verify(server, plan).resolved == {"max_model_len": "52"}


def test_a_dead_engine_and_a_refused_request_are_told_apart(stub: Stub, server: Server, plan: TrialPlan) -> None:
    stub.answers["/health"] = (503, b"")
    with pytest.raises(ServerGoneError):
        verify(server, plan)
    stub.answers |= {"/health": (200, b""), "/v1/completions": (400, {"error": {"message": "no such thing"}})}
    with pytest.raises(RequestRefusedError, match="no such thing"):
        verify(server, plan)
    stub.answers["/v1/completions"] = (200, {"error": {"message": "it only looks like success"}})
    with pytest.raises(RequestRefusedError):
        verify(server, plan)


@pytest.mark.parametrize(("body", "done"), [({"success": True}, True), ({"success": False}, False), (b"", None)])
def test_a_reset_is_believed_only_when_it_is_said(stub: Stub, server: Server, body: object, done: bool | None) -> None:
    stub.answers["/reset_prefix_cache"] = (200, body)
    assert server.reset_prefix_cache() is done


def test_without_tokenize_ids_come_from_the_plan(stub: Stub, server: Server, plan: TrialPlan) -> None:
    with pytest.raises(TokensError, match="tokenIdRange"):
        vocabulary(server, plan)
    assert vocabulary(server, plan.model_copy(update={"token_id_range": (10, 500)})).pool == range(10, 500)
    stub.answers["/tokenize"] = (200, {"tokens": [5, 9, 5, 7]})
    assert vocabulary(server, plan).pool == [5, 7, 9]


def test_warming_lasts_at_least_until_a_first_request_has_ended(plan: TrialPlan) -> None:
    with golden(Script(default=Case("slow", Stream(ttft=1.0)))) as server:
        warm = plan.model_copy(update={"warmup_max_seconds": 0.1})
        target = Target.of(server.url, "m", "completions")
        warmup = warm_up(target, warm, Vocabulary(range(100)).prompts(1), [(32, 4)], Stop())
    assert warmup.requests
    assert warmup.steady is False


def test_warming_a_server_that_refuses_everything_fails(stub: Stub, plan: TrialPlan) -> None:
    stub.answers["/v1/completions"] = (400, {"error": {"message": "out of vocabulary"}})
    target = Target.of(stub.url, "toy/model", "completions")
    warm = plan.model_copy(update={"warmup_max_seconds": 60.0})
    with pytest.raises(RequestRefusedError, match="out of vocabulary"):
        warm_up(target, warm, Vocabulary(range(100)).prompts(1), [(32, 4)], Stop())
