"""Starts servers as processes: simulated ones, and the baseline around a model without weights."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import pytest

START_SECONDS = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "goodput.engines.simulated", *flags]


@dataclass(frozen=True)
class Server:
    """A running server and a client for it."""

    process: subprocess.Popen[str]
    port: int
    client: httpx.Client

    def metric(self, name: str, labels: str = "") -> float:
        """Value of the one series whose line starts so."""
        for line in self.client.get("/metrics").text.splitlines():
            if line.startswith(f"{name}{{") and labels in line:
                return float(line.rsplit(" ", 1)[1])
        pytest.fail(f"no metric {name} {labels}")

    def stream_until_term(self, max_tokens: int) -> tuple[list[str], bool]:
        """Lines of a stream during which the server is told to stop, and whether the connection broke."""
        body = {"prompt": [300], "max_tokens": max_tokens, "ignore_eos": True, "stream": True}
        lines: list[str] = []
        try:
            with self.client.stream("POST", "/v1/completions", json=body) as response:
                for line in response.iter_lines():
                    if not lines:
                        self.process.send_signal(signal.SIGTERM)
                    if line:
                        lines.append(line)
        except httpx.RemoteProtocolError:
            return lines, True
        return lines, False

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.02)


def start(*flags: str) -> Server:
    port = free_port()
    return launch(port, command("toy/model", "--host", "127.0.0.1", "--port", str(port), *flags))


def launch(port: int, words: list[str]) -> Server:
    # what a pod may lack: HOME
    environment = {key: value for key, value in os.environ.items() if key != "HOME"}
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=START_SECONDS)
    server = Server(process, port, client)
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "the server did not start"
        try:
            client.get("/health")
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return server


def stop(server: Server) -> str:
    """Ends the server if it runs; returns its log."""
    server.client.close()
    if server.process.poll() is None:
        server.process.terminate()
    return server.process.communicate(timeout=START_SECONDS)[0]


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Starts servers for one test and ends them."""
    started: list[Server] = []

    def one(*flags: str) -> Server:
        started.append(start(*flags))
        return started[-1]

    yield one
    for server in started:
        stop(server)


@pytest.fixture
def baseline() -> Iterator[Callable[..., Server]]:
    """Starts the baseline around a scripted model, and ends it."""
    started: list[Server] = []

    def one(script: str = "counting", *, shutdown_timeout: int = 0) -> Server:
        port = free_port()
        words = [sys.executable, "-m", "tests.integration.engines.scripted_server"]
        started.append(launch(port, [*words, str(port), script, str(shutdown_timeout)]))
        return started[-1]

    yield one
    for server in started:
        stop(server)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server for a module, as small and fast as it gets."""
    running = start(
        *("--profile", "instant", "--served-model-name", "smollm2", "--max-model-len", "2048"),
        *("--max-num-batched-tokens", "2048", "--max-num-seqs", "16"),
    )
    yield running
    stop(running)
