"""What a ``/metrics`` that misbehaves does to the runner: nothing but a reason."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from goodput.runner.contract import ServerFacts
from goodput.runner.errors import ServerGoneError
from goodput.runner.page import MAX_BYTES
from goodput.runner.server import Server
from goodput.runner.snapshot import read

Write = Callable[[bytes], Any]
Serve = Callable[..., Server]
PAGE = b"vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n"


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server whose ``/metrics`` is written by a function, after status and content type."""
    closing, ends = threading.Event(), []

    def start(
        write: Callable[[Write, threading.Event], None],
        kind: str = "text/plain",
        status: int = 200,
        timeout: float = 10,
    ) -> Server:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.end_headers()
                with suppress(OSError):  # the client has enough
                    write(self.wfile.write, closing)

            def log_message(self, *_: Any) -> None:
                """Keep the test's output quiet."""

        listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        facts = ServerFacts(url=f"http://127.0.0.1:{listener.server_address[1]}", order=1)
        server = Server(facts, model="m", timeout_seconds=timeout)
        ends.append((listener, thread, server))
        return server

    yield start
    closing.set()
    for listener, thread, server in ends:
        server.close()
        listener.shutdown()
        listener.server_close()
        thread.join()


def once(body: bytes) -> Callable[[Write, threading.Event], None]:
    return lambda write, _: write(body)


def trickle(write: Write, closing: threading.Event) -> None:
    """A byte now and then: no read ever times out."""
    for byte in PAGE * 1000:
        write(bytes([byte]))
        if closing.wait(0.01):
            return


@pytest.mark.parametrize("kind", ["text/plain; version=0.0.4; charset=utf-8", "application/openmetrics-text", ""])
def test_prometheus_text_is_read(serve: Serve, kind: str) -> None:
    snapshot = read(serve(once(PAGE), kind).metrics)
    assert (snapshot.running, snapshot.waiting, snapshot.problem) == (1, 0, None)


@pytest.mark.parametrize(
    ("body", "kind", "status", "reason"),
    [
        (b'{"running": 1}', "application/json", 200, "application/json, not Prometheus text"),
        (b'{"running": 1}', "text/plain", 200, "JSON or HTML"),
        (b"<html>Sign in</html>", "text/html; charset=utf-8", 200, "text/html, not Prometheus text"),
        (b" <!doctype html>", "", 200, "JSON or HTML"),
        (b"nothing here", "text/plain", 404, "404"),
        (b"who are you", "text/plain", 401, "401"),
        (b"\xff\xfe\x00", "text/plain", 200, "the numbers of requests are not in /metrics"),
        (b"", "text/plain", 200, "the numbers of requests are not in /metrics"),
    ],
)
def test_what_is_no_prometheus_text_is_unknown_with_the_reason(
    serve: Serve, body: bytes, kind: str, status: int, reason: str
) -> None:
    snapshot = read(serve(once(body), kind, status).metrics)
    assert not snapshot.known
    assert (snapshot.problem or "").startswith("NoServerMetrics: ")
    assert (snapshot.problem or "").endswith(reason)


def test_a_page_without_end_is_cut_off(serve: Serve) -> None:
    sent = 0

    def endless(write: Write, closing: threading.Event) -> None:
        nonlocal sent
        while not closing.is_set():
            sent += write(b"# padding\n" * 6554)

    snapshot = read(serve(endless).metrics)
    assert (snapshot.problem or "").endswith("more than 16 MiB")
    assert sent < 4 * MAX_BYTES


def test_a_page_that_trickles_in_is_given_up(serve: Serve) -> None:
    with pytest.raises(ServerGoneError, match="still coming") as caught:
        read(serve(trickle, timeout=0.2).metrics)
    assert caught.value.slow


def test_a_page_that_does_not_come_is_given_up(serve: Serve) -> None:
    with pytest.raises(ServerGoneError, match="ReadTimeout") as caught:
        read(serve(lambda _, closing: closing.wait(30), timeout=0.2).metrics)
    assert caught.value.slow
