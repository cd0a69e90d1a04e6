"""Children: started in a group of their own, found again after a crash, ended with all that they started."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from goodput.operator.local import layout, tether
from goodput.operator.local.errors import StartError

TOKEN = "GOODPUT_CHILD"  # noqa: S105  # the name of a variable
"""In the environment of a child and of all that it starts: proves that a process found later is ours."""


@dataclass
class Child:
    """A process that this driver started, the leader of its group."""

    process: subprocess.Popen[bytes]
    record: Path
    started: float  # Unix seconds
    kill_at: float | None = field(default=None, init=False)  # monotonic seconds, once it was asked to stop

    @property
    def stopping(self) -> bool:
        """It was asked to stop."""
        return self.kill_at is not None

    def ended(self) -> bool:
        """Whether it has ended. What it left behind in its group is killed before its number is free again."""
        if self.process.returncode is not None:
            return True
        if self.kill_at is not None and time.monotonic() >= self.kill_at:
            self._signal(signal.SIGKILL)
        if os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return False
        self._signal(signal.SIGKILL)
        self.process.wait()
        self.record.unlink(missing_ok=True)
        return True

    def stop(self, grace_seconds: float) -> None:
        """SIGTERM to the leader, which stops what it started itself; SIGKILL to all after the grace."""
        if self.ended() or self.stopping:
            return
        self.kill_at = time.monotonic() + grace_seconds
        self.process.terminate()

    def kill(self) -> None:
        """SIGKILL to the whole group, and wait for its leader."""
        if not self.ended():
            self._signal(signal.SIGKILL)
            self.process.wait()
            self.record.unlink(missing_ok=True)

    @property
    def how(self) -> str:
        """How it ended, in words."""
        code = self.process.returncode
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):  # the group is empty
            os.killpg(self.process.pid, number)


def start(command: Sequence[str], log: Path, records: Path, environment: Mapping[str, str]) -> Child:
    """Start a child that ends with this driver; its output is appended to ``log``. Raises `StartError`."""
    token = secrets.token_hex(8)
    record = records / f"{token}.json"
    tied = [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), *command]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        try:
            process = subprocess.Popen(
                tied,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**environment, TOKEN: token},
                start_new_session=True,
            )
        except OSError as error:
            raise StartError(f"{command[0]} cannot be started: {error}") from error
    layout.write(record, json.dumps({"pid": process.pid, "token": token, "command": list(command)}).encode())
    return Child(process, record, time.time())


def end_stale(records: Path, grace_seconds: float) -> int:
    """End what an earlier driver left running, if it is provably its own. Returns how many processes that were."""
    stale: list[psutil.Process] = []
    for path in records.glob("*.json"):
        found = json.loads(path.read_bytes())
        stale.extend(_ours(found["pid"], found["token"]))
    for process in stale:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(stale, timeout=grace_seconds)
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=grace_seconds)
    for path in records.glob("*.json"):
        path.unlink()
    return len(stale)


def _ours(group: int, token: str) -> Iterable[psutil.Process]:
    """Processes of a group that carry the child's token: numbers are used again, tokens are not."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getpgid(process.pid) == group and process.environ().get(TOKEN) == token:
                yield process
