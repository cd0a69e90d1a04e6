"""The least that Python can do: epoll and ``recv``, the bytes kept.

``python -m bench.client.bare PORT STREAMS SECONDS CPU`` prints microseconds of CPU per event and the number of events.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

TOKENS = 60
PROMPT_TOKENS = 32
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Cost:
    """Microseconds of CPU per event, and how many events there were."""

    micros: float
    events: int


def bare(port: int, streams: int, seconds: float, cpu: int) -> Cost:
    """The bare loop, in a process of its own."""
    command = [sys.executable, "-m", "bench.client.bare", str(port), str(streams), str(seconds), str(cpu)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=_ROOT).stdout
    return Cost(**json.loads(output))


def _loop(port: int, streams: int, seconds: float) -> Cost:
    """Keep ``streams`` requests under way: read, keep the bytes, ask again at the end of an answer."""
    body = json.dumps({"prompt": list(range(PROMPT_TOKENS)), "max_tokens": TOKENS}).encode()
    request = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    poll = select.epoll()
    sockets = {}
    for _ in range(streams):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setblocking(False)
        sockets[sock.fileno()] = sock
        poll.register(sock.fileno(), select.EPOLLIN)
    kept: list[bytes] = []
    cpu, end = time.process_time(), time.monotonic() + seconds
    for sock in sockets.values():
        sock.send(request)
    while time.monotonic() < end:
        for descriptor, _ in poll.poll(0.05):
            sock = sockets[descriptor]
            data = sock.recv(65536)
            kept.append(data)
            if data.endswith(b"\r\n0\r\n\r\n"):
                sock.send(request)
    spent = time.process_time() - cpu
    events = b"".join(kept).count(b"data: {")
    return Cost(spent / events * 1e6, events)


if __name__ == "__main__":
    _port, _streams, _seconds, _cpu = sys.argv[1:]
    os.sched_setaffinity(0, {int(_cpu)})
    print(json.dumps(asdict(_loop(int(_port), int(_streams), float(_seconds)))))
