"""The runner against a server that is not ours: over TLS, with a key, and whatever refuses it before any window."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from goodput.analysis.schema.planned import Config, Load
from goodput.runner.contract import ServerFacts, TrialPlan

if TYPE_CHECKING:
    from tests.integration.conftest import Authority, Fronts
    from tests.integration.runner.conftest import Engine, Results, Runner

SENTINEL = "sk-sentinel-4711"
KEY = "GATEWAY_TOKEN"
Run = Callable[..., "Runner"]
Planned = Callable[..., TrialPlan]
Canned = Callable[[int, str], str]


@pytest.fixture
def external(planned: Planned, results: Results, loads: list[Load]) -> Planned:
    """A trial plan for an external server: (url, file of the authority)."""

    def make(url: str, ca: Path | None = None) -> TrialPlan:
        ca_file = None if ca is None else str(ca)
        facts = ServerFacts(url=url, external=True, order=1, api_key_env=KEY, ca_file=ca_file)
        config = Config(engine="gateway", kind="external", flags={})
        changes = {"server": facts, "config": config, "evidence": "measured"}
        return planned(url, results.uri, loads).model_copy(update=changes)

    return make


@pytest.fixture
def canned() -> Iterator[Canned]:
    """Start servers that give one answer to everything: (status, text), with the key that they got at its end."""
    started: list[ThreadingHTTPServer] = []

    def start(status: int, text: str) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"] or 0))
                data = f"{text} {self.headers['Authorization']}".encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: Any) -> None:
                """Keep the test's output quiet."""

        started.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        started[-1].daemon_threads = True
        threading.Thread(target=started[-1].serve_forever).start()
        return f"http://127.0.0.1:{started[-1].server_address[1]}"

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def port_of(engine: Engine) -> int:
    return int(engine.url.rpartition(":")[2])


def holds_key(folder: Path) -> list[str]:
    """Files below the folder that hold the key."""
    return [path.name for path in folder.rglob("*") if path.is_file() and SENTINEL.encode() in path.read_bytes()]


@pytest.mark.parametrize("tls", [False, True])
def test_a_whole_trial_is_the_same_with_and_without_tls(
    *, engines: Callable[..., Engine], run: Run, external: Planned, results: Results, fronts: Fronts,
    authority: Authority, tmp_path: Path, tls: bool,
) -> None:  # fmt: skip
    engine = engines("--api-key", SENTINEL)
    url = fronts(port_of(engine)).url if tls else engine.url
    plan = external(url, authority.ca).model_copy(update={"warmup_max_seconds": 1.0})
    outcome = run(plan, environment={KEY: SENTINEL}).end()
    assert (outcome.valid, outcome.open, outcome.why) == (2, (), "")
    for index in range(2):
        cell = results.cell(plan, index)
        assert (cell.outcome, cell.evidence, cell.provenance.url) == ("valid", "measured", url)
        assert cell.counts is not None
        assert cell.counts.completed == cell.counts.attempted > 0
        assert any("prefix cache was not reset" in text for text in cell.warnings)
    assert holds_key(tmp_path / "runner") == holds_key(results.root) == []
    again = plan.model_copy(update={"attempt": 2, "sweep": "default.other.00000000"})
    assert run(again, "again", environment={KEY: SENTINEL}).end().valid == 2, "that it has served before is no fault"


def refusing(
    case: str, *, engines: Callable[..., Engine], fronts: Fronts, authority: Authority, canned: Canned, folder: Path
) -> tuple[str, Path]:
    """URL and authority of a server that will have none of it."""
    ca, shown = authority.ca, None
    match case:
        case "KeyExpired":
            url = canned(401, "this key has expired:")
        case "NotOpenAi":
            url = canned(404, "<html>nothing here")
        case "Unreachable":
            url = "http://127.0.0.1:9"
        case "TlsFailed":
            url = canned(404, "").replace("http:", "https:")
        case "KeyRefused":
            url = engines("--api-key", "sk-another").url
        case "TlsUntrusted":
            ca, shown = type(authority).create(folder / "other").ca, authority.issue("known")
        case "TlsHostname":
            shown = authority.issue("elsewhere", host="DNS:elsewhere")
        case _:
            shown = authority.issue("expired", days=0)
    if shown is not None:
        url = fronts(int(canned(200, "").rpartition(":")[2]), shown=shown).url
    return url, ca


@pytest.mark.parametrize(
    ("reason", "outcome", "words"),
    [
        ("TlsUntrusted", "failed", "external.caSecretRef"),
        ("TlsHostname", "failed", "external.url"),
        ("TlsExpired", "failed", "renew it"),
        ("TlsFailed", "failed", "external.url"),
        ("KeyRefused", "failed", "external.apiKeySecretRef"),
        ("KeyExpired", "failed", "external.apiKeySecretRef"),
        ("NotOpenAi", "failed", "external.url"),
        ("Unreachable", "not_run", "external.url"),
    ],
)
def test_what_refuses_us_is_named_before_any_window(
    *, engines: Callable[..., Engine], run: Run, external: Planned, results: Results, fronts: Fronts,
    authority: Authority, canned: Canned, tmp_path: Path, reason: str, outcome: str, words: str,
) -> None:  # fmt: skip
    url, ca = refusing(reason, engines=engines, fronts=fronts, authority=authority, canned=canned, folder=tmp_path)
    runner = run(external(url, ca), environment={KEY: SENTINEL, "HTTPS_PROXY": "http://127.0.0.1:1"})
    told = runner.end()
    assert told.valid == 0
    assert [(cell.outcome, cell.reason) for cell in told.open] == [(outcome, reason)] * 2
    assert words in told.why
    assert not results.root.exists() or not list(results.root.rglob("_COMMIT.json"))
    assert not list(runner.folder.rglob("began.json")), "no cell was begun"
    assert holds_key(tmp_path) == []


def test_a_key_that_is_not_there_and_an_authority_that_is_none(run: Run, external: Planned, tmp_path: Path) -> None:
    nobody = tmp_path / "nobody.pem"
    nobody.write_text("no certificate")
    for number, (plan, words) in enumerate(
        (
            (external("http://127.0.0.1:9"), f"{KEY} (external.apiKeySecretRef) is not set"),
            (external("https://127.0.0.1:9", nobody), "(external.caSecretRef) cannot be read"),
        )
    ):
        told = run(plan, f"runner{number}", environment={KEY: "k" * number}).end()
        assert {cell.reason for cell in told.open} == {"InvalidPlan"}
        assert words in told.why
