"""Whose folder this is, and which cluster holds the machine-wide names of an index."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from testcluster import processes
from testcluster.errors import MachineError
from testcluster.layout import Layout
from testcluster.stop import ALL, stop_all

MARKER = ".goodput-testcluster"
HOLDERS = Path("/run/goodput-testcluster")


@contextmanager
def locked(layout: Layout) -> Iterator[None]:
    """Let one program at a time start or stop the cluster of this index, whoever runs it."""
    with exclusive(HOLDERS / f"{layout.name}.lock"):
        yield


@contextmanager
def exclusive(file: Path) -> Iterator[None]:
    """Hold a lock file; waits for whoever holds it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def claim(layout: Layout) -> None:
    """Take folder and index for this cluster; what a dead cluster of another folder left there is removed.

    Raises MachineError when the folder holds other things, or a living cluster holds the index.
    """
    if layout.state.exists() and any(layout.state.iterdir()) and not (layout.state / MARKER).exists():
        raise MachineError(
            f"{layout.state} is not empty and not a test cluster's folder: set GOODPUT_CLUSTER_DIR to another"
        )
    other = holder(layout)
    if other is not None and other.state != layout.state:
        if processes.ours(ALL, other.state):
            raise MachineError(
                f"the cluster in {other.state} runs under index {layout.index}: "
                "stop it, or set GOODPUT_CLUSTER_INDEX to another"
            )
        if (other.state / MARKER).exists():
            stop_all(other)
    layout.state.mkdir(parents=True, exist_ok=True)
    (layout.state / MARKER).touch()
    (HOLDERS / layout.name).write_text(str(layout.state))


def release(layout: Layout) -> None:
    """Give the index back, if this cluster holds it."""
    other = holder(layout)
    if other is not None and other.state == layout.state:
        (HOLDERS / layout.name).unlink()


def holder(layout: Layout) -> Layout | None:
    """The cluster that took this index last and has not given it back."""
    try:
        return replace(layout, state=Path((HOLDERS / layout.name).read_text()))
    except FileNotFoundError:
        return None


def may_stop(layout: Layout) -> bool:
    """Whether this folder is a test cluster's and nobody else holds its index."""
    other = holder(layout)
    return (layout.state / MARKER).exists() and (other is None or other.state == layout.state)
