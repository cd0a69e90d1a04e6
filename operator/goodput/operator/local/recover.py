"""Going on from what an earlier run left: after Ctrl-C, after a crash, or after a sweep that did not succeed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

from goodput.operator.local import layout, memories, tasks
from goodput.operator.local.layout import Layout
from goodput.operator.local.processes import end_stale
from goodput.operator.local.runners import read_outcome
from goodput.operator.observed import Failure
from goodput.operator.plan.phase import TERMINAL

STALE_GRACE_SECONDS = 20.0
"""What an earlier driver left was told to stop when that died; a runner needs a moment to commit."""


def recover(folders: Layout, now: float) -> int:
    """End what is still running, and close the trials that a driver was killed in. Returns the processes ended.

    Such a trial was interrupted: it gets a new attempt that counts for neither retries nor disruptions. What its
    runner committed stays, and its outcome is kept where it wrote one.
    """
    ended = end_stale(folders.processes, STALE_GRACE_SECONDS)
    for trial, memory in memories.load(folders).items():
        outcome = memory.outcome or read_outcome(folders.trial(trial))
        closed = replace(memory, outcome=outcome, server_gone=memory.server_gone or now)
        if memory.ended is None:
            killed = Failure("Suspended", "the driver was killed")
            closed = replace(closed, ended=now, interrupted=True, failure=killed)
        if closed != memory:
            memories.save(folders, trial, closed)
        shutil.rmtree(folders.trial(trial).spool, ignore_errors=True)
    _stop_clock(folders, now)
    return ended


def forgive(folders: Layout) -> None:
    """Let a sweep that ended without success be run again: every open cell gets a new attempt.

    What was measured stays. The attempts so far count as interrupted, so retries start anew.
    """
    for trial, memory in memories.load(folders).items():
        if memory.outcome is None or not memory.outcome.done:
            memories.save(folders, trial, replace(memory, interrupted=True))
    for folder in folders.analyses.glob("[0-9]*"):
        tasks.supersede(folders.analysis(int(folder.name)))
    canary = tasks.read_ended(folders.canary)
    if canary is not None and canary.state == "failed":
        folders.canary.state.unlink()
    folders.status.unlink(missing_ok=True)


def phase(folders: Layout) -> str | None:
    """The phase that an earlier run left, None where there was none."""
    found = json.loads(layout.read(folders.status) or b"{}")
    name = found.get("phase")
    return str(name) if name else None


def ended_without_success(folders: Layout) -> bool:
    """An earlier run came to an end, but not with every cell measured or pruned."""
    return phase(folders) in TERMINAL - {"Succeeded"}


def _stop_clock(folders: Layout, now: float) -> None:
    """The time since the last run counts as suspended, also where that was killed."""
    found = json.loads(layout.read(folders.status) or b"{}")
    if not found or found.get("suspendedAt") or found.get("phase") in TERMINAL:
        return
    seen = min(now, folders.status.stat().st_mtime)
    found["suspendedSeconds"] = round(float(found.get("suspendedSeconds") or 0) + now - seen)
    layout.write(folders.status, json.dumps(found, indent=1).encode())
