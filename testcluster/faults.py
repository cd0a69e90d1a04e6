"""Ways to break things on the node of the test cluster: kill a container's process, refuse the store."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from testcluster.layout import from_environment

FORBIDDEN = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


def kill(argument: str) -> int:
    """SIGKILL every container's process with this program name or argument; returns how many there were.

    Only processes in the pods' control groups of this cluster: nothing else on the machine is touched.
    """
    pods = f"/{from_environment().name}/kubepods/"
    killed = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            inside = pods in (entry / "cgroup").read_text()
        except OSError:
            continue
        if inside and any(Path(part.decode(errors="replace")).name == argument for part in arguments[:3]):
            os.kill(int(entry.name), signal.SIGKILL)
            killed += 1
    return killed


@dataclass
class Gate:
    """A door to the S3 server that can be shut: it then answers 403 to everything."""

    endpoint: str
    shut: bool = False
    refused: int = 0


@contextmanager
def gate(upstream: str, bind: str) -> Iterator[Gate]:
    """Listen on ``bind`` (an address pods reach) and pass bytes to ``upstream`` while the gate is open."""
    target = urlsplit(upstream)
    listener = socket.create_server((bind, 0))
    door = Gate(f"http://{bind}:{listener.getsockname()[1]}")
    closing = threading.Event()

    def serve() -> None:
        while not closing.is_set():
            try:
                incoming, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=relay, args=(incoming,), daemon=True).start()

    def relay(incoming: socket.socket) -> None:
        with incoming:
            if door.shut:
                refuse(incoming)
                return
            with socket.create_connection((target.hostname or "", target.port or 80)) as outgoing:
                pair = {incoming: outgoing, outgoing: incoming}
                while not closing.is_set() and not door.shut:
                    ready, _, _ = select.select(list(pair), [], [], 0.2)
                    for side in ready:
                        data = side.recv(65536)
                        if not data:
                            return
                        pair[side].sendall(data)

    def refuse(incoming: socket.socket) -> None:
        incoming.settimeout(5)
        incoming.recv(65536)
        door.refused += 1
        head = f"HTTP/1.1 403 Forbidden\r\nContent-Type: application/xml\r\nContent-Length: {len(FORBIDDEN)}\r\n"
        incoming.sendall(head.encode() + b"Connection: close\r\n\r\n" + FORBIDDEN)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield door
    finally:
        closing.set()
        listener.close()
