"""The server's API as a client sees it."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest
from tests.metric_shapes import shapes

GOLDEN = Path(__file__).parents[2] / "data" / "vllm_0.32"
MODEL = "smollm2"


class Running(Protocol):
    client: httpx.Client

    def metric(self, name: str, labels: str = "") -> float: ...


def stream(client: httpx.Client, path: str, **body: Any) -> list[Any]:
    """Documents of a streamed answer, which must end with `[DONE]`."""
    body = {"model": MODEL, "stream": True, "ignore_eos": True, **body}
    with client.stream("POST", path, json=body) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        events = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert events.pop() == "[DONE]"
    return [json.loads(event) for event in events]


def post(server: Running, path: str, **body: Any) -> Any:
    response = server.client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


USAGE = {"include_usage": True, "continuous_usage_stats": True}


def test_a_stream_of_token_ids_has_one_token_per_event(server: Running) -> None:
    prompt = list(range(300, 340))
    *chunks, usage = stream(server.client, "/v1/completions", prompt=prompt, max_tokens=80, stream_options=USAGE)
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == list(range(1, 81))
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 79 + ["length"]
    assert len({chunk["id"] for chunk in [*chunks, usage]}) == 1
    assert usage["choices"] == []
    assert usage["usage"] == {"prompt_tokens": 40, "total_tokens": 120, "completion_tokens": 80}


def test_some_tokens_have_no_text(server: Running) -> None:
    chunks = stream(server.client, "/v1/completions", prompt=[300], max_tokens=1000)
    empty = sum(chunk["choices"][0]["text"] == "" for chunk in chunks)
    assert 0.005 < empty / len(chunks) < 0.06


def test_a_chat_stream_starts_with_the_role(server: Running) -> None:
    messages = [{"role": "user", "content": "hello there"}]
    role, *chunks, usage = stream(
        server.client, "/v1/chat/completions", messages=messages, max_tokens=9, stream_options=USAGE
    )
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert role["usage"]["completion_tokens"] == 0
    assert all(list(chunk["choices"][0]["delta"]) == ["content"] for chunk in chunks)
    assert usage["usage"]["completion_tokens"] == len(chunks) == 9


def test_a_whole_answer_is_the_stream_in_one_piece(server: Running) -> None:
    answer = post(server, "/v1/completions", model=MODEL, prompt="hello there", max_tokens=12, ignore_eos=True)
    assert answer["usage"]["completion_tokens"] == 12
    assert answer["choices"][0]["finish_reason"] == "length"
    tokens = post(server, "/tokenize", prompt="hello there")
    assert answer["usage"]["prompt_tokens"] == tokens["count"]


def test_a_chat_prompt_has_the_length_that_tokenize_says(server: Running) -> None:
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "Hi, what is 1 + 1?"}]
    count = post(server, "/tokenize", messages=messages)["count"]
    answer = post(server, "/v1/chat/completions", messages=messages, max_tokens=1)
    assert answer["usage"]["prompt_tokens"] == count


def test_without_ignore_eos_answers_end_by_themselves(server: Running) -> None:
    reasons, lengths = set(), []
    for _ in range(12):
        answer = post(server, "/v1/completions", prompt="x", max_tokens=200, min_tokens=3)
        reasons.add(answer["choices"][0]["finish_reason"])
        lengths.append(answer["usage"]["completion_tokens"])
    assert "stop" in reasons
    assert min(lengths) >= 3
    assert len(set(lengths)) > 1


def test_tokens_go_back_to_text(server: Running) -> None:
    text = "the Cat sat, on  Ümläuts"
    tokens = post(server, "/tokenize", prompt=text, add_special_tokens=False, return_token_strs=True)
    assert post(server, "/detokenize", tokens=tokens["tokens"])["prompt"] == text
    assert len(tokens["token_strs"]) == tokens["count"] == len(tokens["tokens"])
    assert tokens["max_model_len"] == 2048


@pytest.mark.parametrize(
    ("path", "body", "status", "kind"),
    [
        ("/v1/completions", {"model": "other", "prompt": "x"}, 404, "NotFoundError"),
        ("/v1/completions", {"prompt": [10**6]}, 400, "BadRequestError"),
        ("/v1/completions", {"prompt": [300] * 2048}, 400, "BadRequestError"),
        ("/v1/completions", {"prompt": [300], "max_tokens": 3000}, 400, "BadRequestError"),
        ("/v1/chat/completions", {"messages": "x"}, 400, "Bad Request"),
        ("/tokenize", {}, 400, "Bad Request"),
        ("/detokenize", {"tokens": [10**6]}, 400, "BadRequestError"),
        ("/nowhere", {}, 404, "Not Found"),
    ],
)
def test_a_refusal_has_vllms_error_body(server: Running, path: str, body: Any, status: int, kind: str) -> None:
    response = server.client.post(path, json=body)
    assert response.status_code == status
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["code"]) == (kind, status)


def test_bad_json_is_refused(server: Running) -> None:
    response = server.client.post("/v1/completions", content=b"{not json")
    assert response.status_code == 400
    assert "json_invalid" in response.json()["error"]["message"]


def test_models_has_the_fields_of_the_capture(server: Running) -> None:
    ours, theirs = server.client.get("/v1/models").json(), json.loads((GOLDEN / "models.json").read_text())
    assert set(ours["data"][0]) == set(theirs["data"][0])
    assert ours["data"][0]["id"] == MODEL
    assert ours["data"][0]["max_model_len"] == 2048


def test_server_info_resolves_what_the_capture_resolves(server: Running) -> None:
    config = server.client.get("/server_info", params={"config_format": "json"}).json()["vllm_config"]
    golden = json.loads((GOLDEN / "server_info_config.json").read_text())
    assert set(config["cache_config"]) == set(golden["cache_config"])
    known = {key: value for key, value in golden["scheduler_config"].items() if key in config["scheduler_config"]}
    assert config["scheduler_config"] == known


def test_it_says_everywhere_that_it_is_synthetic(server: Running) -> None:
    assert "simulated" in server.client.get("/version").json()["version"]
    about = server.client.get("/server_info").json()["simulated"]
    assert about["synthetic"] is True
    assert "SYNTHETIC" in about["notice"]
    assert server.client.get("/v1/models").json()["data"][0]["owned_by"] != "vllm"


@pytest.mark.parametrize("path", ["/health", "/ping", "/load", "/version"])
def test_the_small_endpoints_answer(server: Running, path: str) -> None:
    assert server.client.get(path).status_code == 200


def test_the_metrics_are_those_of_the_capture(server: Running) -> None:
    """No difference is allowed in names, types, help texts and labels; unit tests compare buckets and reasons too."""
    stream(server.client, "/v1/completions", prompt=[300], max_tokens=2)
    ours, theirs = server.client.get("/metrics").text, (GOLDEN / "metrics_loaded.txt").read_text()
    assert shapes(ours) == shapes(theirs)


def test_server_counts_equal_client_counts(server: Running) -> None:
    names = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:time_to_first_token_seconds_count")
    before = [server.metric(name) for name in names]
    done = server.metric("vllm:request_success_total", 'finished_reason="length"')

    def one(number: int) -> int:
        prompt = [300 + number] * 50
        return len(stream(server.client, "/v1/completions", prompt=prompt, max_tokens=20))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(16))) == [20] * 16
    after = [server.metric(name) for name in names]
    assert [new - old for new, old in zip(after, before, strict=True)] == [16 * 50, 16 * 20, 16]
    assert server.metric("vllm:request_success_total", 'finished_reason="length"') == done + 16
    assert server.metric("vllm:num_requests_running") == server.metric("vllm:num_requests_waiting") == 0


def test_a_repeated_prompt_hits_the_cache_until_it_is_reset(server: Running) -> None:
    prompt = [1000 + number for number in range(320)]

    def hits() -> float:
        before = server.metric("vllm:prefix_cache_hits_total")
        post(server, "/v1/completions", prompt=prompt, max_tokens=1)
        return server.metric("vllm:prefix_cache_hits_total") - before

    assert [hits(), hits()] == [0, 304]
    assert server.client.post("/reset_prefix_cache").json() == {"success": True}
    assert hits() == 0
    for path in ("/reset_mm_cache", "/reset_encoder_cache"):
        assert server.client.post(path).status_code == 200


def test_a_client_that_leaves_aborts_its_request(server: Running) -> None:
    aborts = server.metric("vllm:request_success_total", 'finished_reason="abort"')
    body = {"prompt": [300], "max_tokens": 2000, "ignore_eos": True, "stream": True}
    with server.client.stream("POST", "/v1/completions", json=body) as response:
        lines = response.iter_lines()
        next(lines)
        assert server.client.post("/reset_prefix_cache").json() == {"success": False}
    while server.metric("vllm:request_success_total", 'finished_reason="abort"') == aborts:
        pass
    assert server.metric("vllm:num_requests_running") == 0
    assert server.client.post("/reset_prefix_cache").json() == {"success": True}
