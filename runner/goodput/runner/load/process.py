"""Starting and ending the processes of a cell: workers, and a follower where there is a core for it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from goodput.runner.load.errors import WorkerError

READY_SECONDS = 60.0
_MODULE = "goodput.runner.load.worker"
_FOLLOWER = "goodput.runner.load.follow"
_log = logging.getLogger(__name__)


class Worker:
    """One worker process. It ends by itself, or when its standard input ends."""

    def __init__(self, folder: Path, index: int, headers: Mapping[str, str]) -> None:
        self._errors = folder / f"worker-{index}.err"
        self.index = index
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE, str(folder), str(index)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # a Ctrl-C is for the trial, which then stops the worker
            )
        self._say(json.dumps(dict(headers)))

    def wait_ready(self, deadline: float) -> None:
        """Wait until it can start. Raises `WorkerError` at the (monotonic) deadline or when it dies."""
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            raise WorkerError(f"worker {self.index} is not ready after {READY_SECONDS:g} s")
        if not os.read(self._process.stdout.fileno(), 1):
            self._process.wait()
            raise WorkerError(self.failure() or f"worker {self.index} ended before its start")

    def start(self, start_monotonic_ns: int) -> None:
        """Give it the cell's start."""
        self._say(str(start_monotonic_ns))

    def stop(self) -> None:
        """Ask it to end now: idempotent."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):  # it has ended already
                self._process.stdin.close()

    def kill(self) -> None:
        """End it at once and give its pipes back."""
        if self._process.poll() is None:
            self._process.kill()
        self.close()

    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def wait(self, seconds: float) -> bool:
        """Wait for its end."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def failure(self) -> str | None:
        """Why it failed; None where it ended well or has not ended."""
        code = self._process.poll()
        if not code:
            return None
        last = self._errors.read_text(errors="replace").strip().splitlines()[-1:]
        return f"worker {self.index} ended with {code}: {' '.join(last)}".rstrip(": ")

    def close(self) -> None:
        """Close the pipes and reap it."""
        self.stop()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._process.wait()
            raise WorkerError(self.failure() or f"worker {self.index} ended before its start") from None


class FollowerProcess:
    """The process that follows a cell's spool; it gives way to everything else. What it does decides nothing."""

    def __init__(self, folder: Path) -> None:
        self._errors = folder / "follower.err"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _FOLLOWER, str(folder)],
                stdin=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        with contextlib.suppress(AttributeError, OSError):  # where the platform cannot, it runs like any other
            os.sched_setscheduler(self._process.pid, os.SCHED_IDLE, os.sched_param(0))

    def finish(self, seconds: float) -> None:
        """Wait for it to come to the spool's end; after that time it is ended."""
        assert self._process.stdin is not None
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process.stdin.close()
        if self._process.wait() > 0:
            last = self._errors.read_text(errors="replace").strip().splitlines()[-1:]
            _log.warning("live latencies were not followed to the end: %s", " ".join(last))
