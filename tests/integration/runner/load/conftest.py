"""A golden server: what it sends is scripted byte by byte, so the truth about every request is known."""

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goodput.analysis.schema import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.prompts import Ids
from goodput.runner.load.run import CellRecords, LoadRun, Target

# A step: bytes to send, seconds to wait, or "keep", "close", "reset", "hang", "gate".
Step = bytes | float | str
Script = Sequence[Step]

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def chunk(payload: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def event(total: int, *, text: str = "x", finish: str | None = None, usage: bool = True) -> bytes:
    """One event of a completion with the usage so far."""
    document: dict[str, Any] = {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}
    if usage:
        document["usage"] = {"prompt_tokens": 4, "total_tokens": 4 + total, "completion_tokens": total}
    return b"data: " + json.dumps(document).encode() + b"\n\n"


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def plain(tokens: int, seconds: float = 0.0) -> list[Step]:
    """A proper stream: one token per event, with a wait before each."""
    steps: list[Step] = [HEAD]
    for total in range(1, tokens + 1):
        finish = "length" if total == tokens else None
        steps += [seconds, chunk(event(total, finish=finish))]
    return [*steps, chunk(DONE) + b"0\r\n\r\n", "keep"]


class IndexedIds:
    """Prompts that begin with their index, so the server knows which request it has."""

    def ids(self, n: int, index: int) -> Ids:
        return np.array([index, *range(n - 1)], dtype=np.int64)


@dataclass
class Seen:
    """What the server saw and did for one request, with its own CLOCK_MONOTONIC ns around each send."""

    bodies: list[dict[str, Any]] = field(default_factory=list)
    sends: list[tuple[int, int]] = field(default_factory=list)
    received_ns: int = 0


class GoldenServer:
    """Serves ``scripts[index]`` to the request whose prompt begins with ``index``, ``default`` to others.

    The step "gate" waits until ``gate`` scripted requests have arrived.
    """

    def __init__(self, scripts: Sequence[Script], default: Script, *, gate: int = 0) -> None:
        self.seen: dict[int, Seen] = {}
        self.heads: list[bytes] = []
        self.connections = 0
        self.at_once = self.at_once_highest = 0
        self._scripts, self._default, self._gate = scripts, default, gate
        self._lock = threading.Lock()
        self._gate_open = threading.Event()
        self._arrived = 0
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._listener.settimeout(0.1)
        self.port = int(self._listener.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._closing.set()
        self._gate_open.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                sock, _ = self._listener.accept()
            except TimeoutError:
                continue
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(sock,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(0.1)
        with sock:
            requests = 0
            while (request := self._request(sock)) is not None:
                requests += 1
                try:
                    if not self._answer(sock, request, requests):
                        return
                except OSError:
                    return

    def _request(self, sock: socket.socket) -> dict[str, Any] | None:
        received = b""
        while not self._closing.is_set():
            try:
                data = sock.recv(1 << 20)
            except TimeoutError:
                continue
            except OSError:
                return None
            if not data:
                return None
            received += data
            head, found, body = received.partition(b"\r\n\r\n")
            length = _LENGTH.search(head)
            if found and length is not None and len(body) >= int(length[1]):
                self.heads.append(head)
                document: dict[str, Any] = json.loads(body)
                return document
        return None

    def _answer(self, sock: socket.socket, request: dict[str, Any], requests: int) -> bool:
        index = request["prompt"][0] if "prompt" in request else -1
        with self._lock:
            seen = self.seen.setdefault(index, Seen())
            seen.bodies.append(request)
            seen.received_ns = time.monotonic_ns()
            self._arrived += 0 <= index < len(self._scripts)
            self.at_once += 1
            self.at_once_highest = max(self.at_once, self.at_once_highest)
            if self._arrived >= self._gate:
                self._gate_open.set()
        script = self._scripts[index] if 0 <= index < len(self._scripts) else self._default
        if script[0] == "stale":  # closes a connection that is used again, as if it had just timed out
            if requests > 1:
                self._leave()
                return False
            script = script[1:]
        return self._play(sock, script, seen)

    def _leave(self) -> None:
        with self._lock:
            self.at_once -= 1

    def _play(self, sock: socket.socket, script: Script, seen: Seen) -> bool:
        left = False
        try:
            for step in script:
                if isinstance(step, bytes):
                    before = time.monotonic_ns()
                    if step.endswith(b"0\r\n\r\n"):
                        self._leave()
                        left = True
                    sock.sendall(step)
                    seen.sends.append((before, time.monotonic_ns()))
                elif isinstance(step, float):
                    time.sleep(step)
                elif step == "gate":
                    self._gate_open.wait()
                elif step == "hang":
                    self._hang(sock)
                    return False
                elif step == "reset":
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return False
                else:
                    return step == "keep"
        finally:
            if not left:
                self._leave()
        return False

    def _hang(self, sock: socket.socket) -> None:
        """Until the client closes."""
        while not self._closing.is_set():
            try:
                if not sock.recv(1):
                    return
            except TimeoutError:
                continue
            except OSError:
                return


Golden = Callable[..., GoldenServer]
RunCell = Callable[..., CellRecords]


@pytest.fixture
def golden() -> Iterator[Golden]:
    """Starts golden servers; they end with the test."""
    servers: list[GoldenServer] = []

    def start(scripts: Sequence[Script] = (), default: Script = (), *, gate: int = 0) -> GoldenServer:
        servers.append(GoldenServer(scripts, default or plain(4), gate=gate))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def run_cell(tmp_path: Path) -> RunCell:
    """Runs a cell against a port to its end and collects it."""
    cells = 0

    def run(port: int, load: Load, *, lead_in: float = 0.0, drain: float = 20.0, processes: int = 1) -> CellRecords:
        nonlocal cells
        cells += 1
        plan = PlannedLoad(load=load, seed=11, lead_in_seconds=lead_in, drain_seconds=drain)
        target = Target.of(f"http://127.0.0.1:{port}", "golden", "completions", {"Authorization": "Bearer k"})
        cell = LoadRun(plan, target, IndexedIds(), tmp_path / f"cell{cells}", processes=processes)
        cell.start()
        try:
            assert cell.wait(60)
            return cell.collect()
        finally:
            cell.close()

    return run
