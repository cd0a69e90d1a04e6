"""Where the local driver keeps what a cluster keeps in ConfigMaps: ``.goodput/<sweep's folder>/``."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from goodput.operator.sweep import TrialId


@dataclass(frozen=True)
class TrialFolder:
    """Files of one attempt."""

    root: Path

    @property
    def memory(self) -> Path:
        """What is remembered of it; the trial exists because this does."""
        return self.root / "memory.json"

    @property
    def plan(self) -> Path:
        """``trial.json``, as the runner reads it."""
        return self.root / "trial.json"

    @property
    def outcome(self) -> Path:
        """The runner's last word."""
        return self.root / "outcome.json"

    @property
    def server_log(self) -> Path:
        """All that the server wrote."""
        return self.root / "server.log"

    @property
    def runner_log(self) -> Path:
        """All that the runner wrote."""
        return self.root / "runner.log"

    @property
    def spool(self) -> Path:
        """Records that wait for their commit."""
        return self.root / "spool"

    @property
    def compiled(self) -> Path:
        """The server's own compile cache: every start compiles anew."""
        return self.root / "compiled"

    @property
    def primed(self) -> Path:
        """The compile cache of all servers of the sweep, filled before the first block."""
        return self.root.parent.parent / "compiled"


@dataclass(frozen=True)
class TaskFolder:
    """Files of the canary, or of one analysis run."""

    root: Path

    @property
    def input(self) -> Path:
        """What it is to do."""
        return self.root / "input.json"

    @property
    def message(self) -> Path:
        """Its answer."""
        return self.root / "message.json"

    @property
    def log(self) -> Path:
        """All that it wrote."""
        return self.root / "log"

    @property
    def state(self) -> Path:
        """How it ended; missing while it runs."""
        return self.root / "state.json"


@dataclass(frozen=True)
class Layout:
    """The state folder of one sweep."""

    root: Path

    @property
    def lock(self) -> Path:
        """Held by the driver that works here."""
        return self.root / "lock"

    @property
    def status(self) -> Path:
        """The status as last written."""
        return self.root / "status.json"

    @property
    def canary(self) -> TaskFolder:
        """The preflight check."""
        return TaskFolder(self.root / "canary")

    @property
    def trials(self) -> Path:
        """A folder for each attempt."""
        return self.root / "trials"

    @property
    def analyses(self) -> Path:
        """A folder for each generation."""
        return self.root / "analyses"

    @property
    def packs(self) -> Path:
        """Packed logs that wait for their upload."""
        return self.root / "packs"

    @property
    def processes(self) -> Path:
        """A file for each child that runs."""
        return self.root / "processes"

    def trial(self, trial: TrialId) -> TrialFolder:
        """Folder of an attempt."""
        return TrialFolder(self.trials / trial.name)

    def analysis(self, generation: int) -> TaskFolder:
        """Folder of an analysis run."""
        return TaskFolder(self.analyses / str(generation))

    def pack(self, trial: TrialId) -> Path:
        """Folder of a trial's packed logs."""
        return self.packs / trial.name


def trial_id(name: str) -> TrialId | None:
    """The attempt that a folder's name stands for."""
    config, _, rest = name.partition("-")
    block, _, attempt = rest.partition("-")
    return TrialId(block=block, config=config, attempt=int(attempt)) if attempt.isdecimal() else None


def write(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a driver killed in between, sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: Path) -> bytes | None:
    """A file's bytes, None where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def read_text(path: Path) -> str:
    """A log's text; empty where there is none."""
    return (read(path) or b"").decode(errors="replace")
