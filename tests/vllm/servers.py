"""Real servers for a test: started, waited for, ended."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

START_SECONDS = 600.0


@contextmanager
def serving(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[str]:
    """URL of a server that runs ``command`` with a host and a free port added."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url, words = f"http://127.0.0.1:{port}", [*command, "--host", "127.0.0.1", "--port", str(port)]
    with log.open("w") as file, subprocess.Popen(words, env=dict(environment), stdout=file, stderr=file) as process:
        try:
            deadline = time.monotonic() + START_SECONDS
            while not healthy(url):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.5)  # nothing tells when it is ready
            yield url
        finally:
            process.terminate()


def healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
