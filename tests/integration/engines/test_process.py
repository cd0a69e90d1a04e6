"""The server as a process: start, refusals, stop."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

Serve = Callable[..., Any]
SLOW = ("--profile", "teaching", "--max-num-seqs", "8")  # about 17 ms per token


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "goodput.engines.simulated", *flags]


def run(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*flags), capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (["toy", "--no-such-flag", "3"], 2, "unrecognized arguments: --no-such-flag 3"),
        (["toy", "--max-num-seqs", "many"], 2, "argument --max-num-seqs: invalid int value: 'many'"),
        (["toy", "--profile", "tetching"], 2, "unknown profile 'tetching'"),
        ([], 2, "a model is needed"),
        (
            ["toy", "--max-num-batched-tokens", "64", "--max-num-seqs", "128"],
            1,
            "max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (128).",
        ),
        (
            ["toy", "--max-num-batched-tokens", "0"],
            1,
            "for SchedulerConfig\nmax_num_batched_tokens\n  Input should be greater than or equal to 1",
        ),
        (["toy", "--num-gpu-blocks-override", "20"], 1, "Engine core initialization failed."),
        (["toy", "--vocab-size", "5"], 2, "argument --vocab-size: must be at least 264"),
    ],
)
def test_a_wrong_command_line_ends_with_its_reason(flags: list[str], code: int, message: str) -> None:
    done = run(*flags)
    assert done.returncode == code
    assert message in done.stderr
    assert ("Traceback" in done.stderr) == (code == 1)


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("toy", "--host", "127.0.0.1", "--port", str(port))
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


def test_it_does_not_listen_before_its_start_time_is_over_and_can_be_stopped_meanwhile() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    flags = ("toy", "--host", "127.0.0.1", "--port", str(port), "--start-seconds", "600")
    with subprocess.Popen(command(*flags), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "Using max model len" not in process.stdout.readline():
            assert process.poll() is None
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_the_start_takes_the_time_that_the_log_says(serve: Serve) -> None:
    server = serve("--start-seconds", "0.3")
    server.process.terminate()
    log = server.process.communicate(timeout=60)[0]
    assert "SYNTHETIC" in log
    assert "GPU KV cache size: " in log
    (line,) = [line for line in log.splitlines() if "init engine (profile, create kv cache, warmup model)" in line]
    assert float(line.split(" took ")[1].removesuffix(" s")) >= 0.3


def test_keys_are_asked_for_under_v1_only(serve: Serve) -> None:
    server = serve("--api-key", "one", "two", "--profile", "instant")
    get: Callable[..., httpx.Response] = server.client.get
    assert get("/health").status_code == get("/metrics").status_code == 200
    refused = get("/v1/models")
    assert (refused.status_code, refused.json()) == (401, {"error": "Unauthorized"})
    for key, status in (("two", 200), ("three", 401)):
        assert get("/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code == status


def test_a_drain_finishes_open_requests_and_takes_no_new_ones(serve: Serve) -> None:
    server = serve(*SLOW, "--shutdown-timeout", "60")
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(server.stream_until_term, (30, 60)))
    for (lines, broken), count in zip(results, (30, 60), strict=True):
        assert not broken
        assert len(lines) == count + 1
        assert lines[-1] == "data: [DONE]"
    assert server.process.wait(60) == 0
    with pytest.raises(httpx.ConnectError):
        server.client.get("/health")


def test_without_a_timeout_open_requests_are_cut_off_and_nothing_hangs(serve: Serve) -> None:
    server = serve(*SLOW)
    lines, broken = server.stream_until_term(2000)
    assert broken
    assert "data: [DONE]" not in lines
    assert server.process.wait(60) == 0


def test_a_drain_that_takes_too_long_ends_with_an_abort(serve: Serve) -> None:
    server = serve(*SLOW, "--shutdown-timeout", "1")
    lines, broken = server.stream_until_term(5000)
    assert broken
    assert 1 < len(lines) < 2000
    assert server.process.wait(60) == 0


def test_the_fixed_rate_server_serves_one_at_a_time(serve: Serve) -> None:
    server = serve("--profile", "fixed-rate")

    def one(_: int) -> None:
        server.client.post("/v1/completions", json={"prompt": [300] * 40, "max_tokens": 5, "ignore_eos": True})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(4)))
    # the server's own clock: its time for a request is exact, whatever this machine does
    assert server.metric("vllm:request_inference_time_seconds_sum") == pytest.approx(4 * 0.1)
    assert server.metric("vllm:request_inference_time_seconds_count") == 4
