"""Starts a golden server as a process of its own and asks it for its truth."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.golden.script import Script

ROOT = Path(__file__).parents[2]
_SECONDS = 60


class Golden:
    """A running golden server."""

    def __init__(self, port: int, pid: int) -> None:
        self.port, self.pid = port, pid
        self.url = f"http://127.0.0.1:{port}"

    def truth(self, *, sends: bool = True) -> list[dict[str, Any]]:
        """Its rows, in the order of arrival (see `truth.Row`)."""
        text = self._ask("GET", "/truth" if sends else "/truth?events=0")
        return [json.loads(line) for line in text.splitlines()]

    def summary(self) -> dict[str, Any]:
        """Its counts."""
        document: dict[str, Any] = json.loads(self._ask("GET", "/truth/summary"))
        return document

    def reset(self) -> None:
        """Forget what it saw."""
        self._ask("POST", "/truth/reset")

    def _ask(self, method: str, path: str) -> bytes:
        request = urllib.request.Request(self.url + path, method=method, headers={"Connection": "close"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=_SECONDS) as response:
            return bytes(response.read())


@contextmanager
def golden(script: Script, *, cpu: int | None = None, fifo: bool = False) -> Iterator[Golden]:
    """Serves the script on a free port; it ends with the block, or with this process."""
    command = [sys.executable, "-m", "bench.golden", "--port", "0", "--child"]
    command += [*(["--cpu", str(cpu)] if cpu is not None else []), *(["--fifo"] if fifo else [])]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(script.document(), file)
        file.flush()
        process = subprocess.Popen(
            [*command, "--script", file.name], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the golden server ended with {process.wait()}")
            yield Golden(int(line.split()[-1]), process.pid)
        finally:
            process.stdin.close()
            process.wait(_SECONDS)
            process.stdout.close()
