"""The Transformers baseline over HTTP, around a model that says what it is told to."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.integration.engines.scripted_server import SCRIPTS

if TYPE_CHECKING:
    from tests.integration.engines.conftest import Server

START_SECONDS = 60.0
USAGE = {"include_usage": True, "continuous_usage_stats": True}
Start = Callable[..., "Server"]


def stream(server: Server, path: str = "/v1/completions", **body: Any) -> list[Any]:
    """Documents of a streamed answer, which must end with `[DONE]`."""
    body = {"model": "toy", "stream": True, "ignore_eos": True, "stream_options": USAGE, **body}
    with server.client.stream("POST", path, json=body) as response:
        assert response.status_code == 200, response.read()
        events = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert events.pop() == "[DONE]"
    return [json.loads(event) for event in events]


def test_a_stream_has_one_token_per_event_and_usage_all_along(baseline: Start) -> None:
    server = baseline()
    *chunks, usage = stream(server, prompt=list(range(300, 340)), max_tokens=30, return_token_ids=True)
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == list(range(1, 31))
    assert [chunk["choices"][0]["token_ids"] for chunk in chunks] == [[token] for token in range(300, 330)]
    assert chunks[0]["choices"][0]["prompt_token_ids"] == list(range(300, 340))
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 29 + ["length"]
    assert usage["usage"] == {"prompt_tokens": 40, "total_tokens": 70, "completion_tokens": 30}


def test_a_chat_is_the_template_and_the_role_comes_first(baseline: Start) -> None:
    server = baseline()
    messages = [{"role": "user", "content": "hello there"}]
    role, *chunks, usage = stream(server, "/v1/chat/completions", messages=messages, max_tokens=5)
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    count = server.client.post("/tokenize", json={"messages": messages}).json()["count"]
    assert usage["usage"] == {"prompt_tokens": count, "total_tokens": count + 5, "completion_tokens": len(chunks)}


def test_an_answer_ends_at_the_end_of_text_unless_it_is_ignored(baseline: Start) -> None:
    server = baseline("ending")
    body = {"prompt": [300], "max_tokens": 5, "return_token_ids": True}
    for ignore, length, reason in ((False, 3, "stop"), (True, 5, "length")):
        answer = server.client.post("/v1/completions", json={**body, "ignore_eos": ignore}).json()
        (choice,) = answer["choices"]
        assert (choice["token_ids"], choice["finish_reason"]) == (list(SCRIPTS["ending"])[:length], reason)
        assert answer["usage"]["completion_tokens"] == length


def test_streams_queue_and_the_queue_is_in_the_metrics(baseline: Start) -> None:
    server = baseline()
    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(stream, server, prompt=[300], max_tokens=300) for _ in range(3)]
        server.wait_for(lambda: server.metric("vllm:num_requests_waiting") == 2)
        assert server.metric("vllm:num_requests_running") == 1
        assert [len(answer.result()) for answer in answers] == [301] * 3
    assert server.metric("vllm:request_success_total", 'finished_reason="length"') == 3
    assert server.metric("vllm:generation_tokens_total") == 900
    assert server.metric("vllm:prompt_tokens_total") == 3
    # One after the other: the last one waited for at least as long as the first two worked.
    queued, worked = (server.metric(f"vllm:request_{name}_time_seconds_sum") for name in ("queue", "inference"))
    assert queued > 0.9 * worked
    server.wait_for(lambda: server.metric("vllm:num_requests_running") == 0)


def test_the_metrics_are_a_part_of_vllms(baseline: Start) -> None:
    server = baseline()
    families = {family.name for family in text_string_to_metric_families(server.client.get("/metrics").text)}
    ours = {name.removeprefix("vllm:") for name in families if name.startswith("vllm:")}
    assert {"num_requests_running", "num_requests_waiting", "prompt_tokens", "generation_tokens"} <= ours
    assert {"request_success", "time_to_first_token_seconds", "e2e_request_latency_seconds"} <= ours
    assert not ours & {"kv_cache_usage_perc", "num_preemptions", "prefix_cache_queries", "cache_config_info"}


def test_what_it_has_not_is_not_found_or_refused_by_name(baseline: Start) -> None:
    server = baseline()
    assert server.client.post("/reset_prefix_cache").status_code == 404
    refused = server.client.post("/v1/completions", json={"prompt": [300], "logprobs": 3})
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "logprobs"


def test_it_says_what_it_is(baseline: Start) -> None:
    server = baseline()
    assert server.client.get("/version").json() == {"version": "5.0.0", "engine": "transformers"}
    info = server.client.get("/server_info", params={"config_format": "json"}).json()
    assert info["vllm_config"]["model_config"]["dtype"] == "float32"
    assert info["vllm_config"]["device_config"] == {"device": "cpu"}
    assert info["system_env"]["torch_version"] == "2.13.0"
    (model,) = server.client.get("/v1/models").json()["data"]
    assert (model["id"], model["root"], model["max_model_len"]) == ("toy", "scripted", 1000)


def test_a_client_that_leaves_stops_its_generation(baseline: Start) -> None:
    server = baseline()
    body = {"prompt": [300], "max_tokens": 600, "ignore_eos": True, "stream": True}
    with server.client.stream("POST", "/v1/completions", json=body) as response:
        next(response.iter_lines())
    server.wait_for(lambda: server.metric("vllm:request_success_total", 'finished_reason="abort"') == 1)
    server.wait_for(lambda: server.metric("vllm:num_requests_running") == 0)
    assert server.metric("vllm:generation_tokens_total") < 600
    assert len(stream(server, prompt=[300], max_tokens=2)) == 3


def test_sigterm_cuts_streams_off_visibly_and_nothing_hangs(baseline: Start) -> None:
    server = baseline()
    lines, broken = server.stream_until_term(600)
    assert broken
    assert "data: [DONE]" not in lines
    assert server.process.wait(START_SECONDS) == 0


def test_a_drain_finishes_the_queue(baseline: Start) -> None:
    server = baseline(shutdown_timeout=60)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(server.stream_until_term, (40, 60)))
    for (lines, broken), count in zip(results, (40, 60), strict=True):
        assert not broken
        assert len(lines) == count + 1
    assert server.process.wait(START_SECONDS) == 0


def test_a_model_that_fails_ends_the_server_and_no_stream_looks_complete(baseline: Start) -> None:
    server = baseline("failing")
    with pytest.raises(httpx.RemoteProtocolError):
        stream(server, prompt=[300], max_tokens=5)
    assert server.process.wait(START_SECONDS) == 1
    assert server.process.stdout is not None
    assert "RuntimeError: out of memory" in server.process.stdout.read()
