"""What must survive the runner's own death: a folder per trial attempt, and one per cell in it.

A cell's folder tells how far it came:

    began.json       it was begun
    opening.json     idle snapshot, prefix cache reset: the load may start
    load/            the load client's own files;  samples.jsonl, gpu.jsonl  the metrics meanwhile
    closing.json     FINISHED: closing snapshot (or why there is none)
    commit/          the files to upload; ``_COMMIT.json`` is written last
    committed.json   it is in the store; everything else is gone
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TypeVar

from goodput.analysis.schema.base import CellOutcome, Document
from goodput.analysis.schema.cell import Outputs
from goodput.analysis.schema.commit import Commit
from goodput.analysis.schema.provenance import Provenance
from goodput.analysis.schema.server import PrefixReset
from goodput.runner.contract import TrialPlan
from goodput.runner.errors import PlanError
from goodput.runner.snapshot import Snapshot
from goodput.runner.warmup import Warmup

COMMIT = "_COMMIT.json"
_AnyDocument = TypeVar("_AnyDocument", bound=Document)


class Memory(Document):
    """What a restarted runner must know of the trial. Written before the first request to the server."""

    began_unix: float
    server_start_time: float | None = None  # of the server's process: another one is another server
    provenance: Provenance | None = None  # verified
    warnings: tuple[str, ...] = ()
    warmups: int = 0  # begun
    warmup: Warmup | None = None  # ended
    outputs: Outputs | None = None  # of the output check
    ceiling: float | None = None  # events per CPU second of the load client


class Began(Document):
    """A cell was begun."""

    unix: float


class Opening(Document):
    """The server is idle, with an empty prefix cache as far as it says: the load may start."""

    snapshot: Snapshot
    prefix_reset: PrefixReset | None = None
    warnings: tuple[str, ...] = ()


class Closing(Document):
    """The end of a cell: its closing snapshot, and the reason where it is void already."""

    snapshot: Snapshot | None = None
    reason: str | None = None
    message: str | None = None


class Committed(Document):
    """What was committed."""

    outcome: CellOutcome
    reason: str | None = None


class CellSpool:
    """The folder of one cell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.load = folder / "load"
        self.samples = folder / "samples.jsonl"
        self.gpu = folder / "gpu.jsonl"

    def begin(self, unix: float) -> None:
        """Note that the cell was begun."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(self.folder / "began.json", Began(unix=unix))

    @property
    def began(self) -> Began | None:
        """When it was begun."""
        return _read(self.folder / "began.json", Began)

    @property
    def opening(self) -> Opening | None:
        """The state before the load, None while it has not come so far."""
        return _read(self.folder / "opening.json", Opening)

    def open(self, opening: Opening) -> None:
        """Note the state before the load."""
        _write(self.folder / "opening.json", opening)

    @property
    def closing(self) -> Closing | None:
        """The end, None while it has not come."""
        return _read(self.folder / "closing.json", Closing)

    def close(self, closing: Closing) -> None:
        """Note the end: from here on the cell counts as finished."""
        _write(self.folder / "closing.json", closing)

    @property
    def commit(self) -> Commit | None:
        """The commit that is ready for the store."""
        return _read(self.folder / "commit" / COMMIT, Commit)

    def stage(self, files: dict[str, bytes], commit: Commit) -> None:
        """Lay the files of a commit ready; the commit itself comes last."""
        folder = self.folder / "commit"
        folder.mkdir(exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        _write(folder / COMMIT, commit)
        shutil.rmtree(self.load, ignore_errors=True)
        self._drop_samples()

    def staged(self, name: str) -> bytes:
        """Bytes of a file that is laid ready."""
        return (self.folder / "commit" / name).read_bytes()

    @property
    def committed(self) -> Committed | None:
        """What the store has of this cell and attempt."""
        return _read(self.folder / "committed.json", Committed)

    def settle(self, committed: Committed) -> None:
        """Note what the store has, and free the space."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(self.folder / "committed.json", committed)
        shutil.rmtree(self.folder / "commit", ignore_errors=True)
        shutil.rmtree(self.load, ignore_errors=True)
        self._drop_samples()

    def _drop_samples(self) -> None:
        self.samples.unlink(missing_ok=True)
        self.gpu.unlink(missing_ok=True)


class TrialSpool:
    """The folder of one trial attempt below ``root``.

    Raises:
        PlanError: the folder belongs to a trial with another plan.
    """

    def __init__(self, root: Path, plan: TrialPlan) -> None:
        self.folder = root / f"{plan.sweep}-{plan.config.id}-{plan.block}-{plan.attempt}"
        self.folder.mkdir(parents=True, exist_ok=True)
        known = _read(self.folder / "trial.json", TrialPlan)
        if known is not None and known != plan:
            raise PlanError(f"{self.folder} belongs to a trial with another plan")
        _write(self.folder / "trial.json", plan)

    @property
    def memory(self) -> Memory | None:
        """What an earlier runner of this attempt left; None for the first."""
        return _read(self.folder / "memory.json", Memory)

    def remember(self, memory: Memory) -> None:
        """Replace the memory."""
        _write(self.folder / "memory.json", memory)

    def cell(self, load_id: str) -> CellSpool:
        """The folder of one cell."""
        return CellSpool(self.folder / "cells" / load_id)

    @property
    def used_bytes(self) -> int:
        """Size of all its files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    @property
    def free_bytes(self) -> int:
        """Space left on its file system."""
        return shutil.disk_usage(self.folder).free


def _write(path: Path, document: Document) -> None:
    """Whole or not at all, as seen by whoever reads it after a kill."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(document.to_json())
    part.replace(path)


def _read(path: Path, kind: type[_AnyDocument]) -> _AnyDocument | None:
    return kind.model_validate_json(path.read_bytes()) if path.exists() else None
