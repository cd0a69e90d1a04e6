"""Canary and analysis as processes: what they are given, and how they ended, kept in files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from goodput.analysis.schema.answer import AnalysisAnswer
from goodput.analysis.schema.base import Document
from goodput.operator.classify import last_line
from goodput.operator.local import commands, layout
from goodput.operator.local.errors import StartError
from goodput.operator.local.layout import Layout, TaskFolder
from goodput.operator.local.processes import Child, start
from goodput.operator.observed import Analysis, Canary, Failure
from goodput.runner.contract import CanaryAnswer

GRACE_SECONDS = 5.0


class Ended(Document):
    """``state.json``: how a task ended. ``superseded``: of an earlier run of the sweep, no longer the last word."""

    state: Literal["succeeded", "failed"]
    since: float
    block: str | None = None
    superseded: bool = False
    reason: str | None = None
    message: str = ""
    answer: AnalysisAnswer | None = None

    @property
    def failure(self) -> Failure | None:
        """Why it failed."""
        return None if self.reason is None else Failure(self.reason, self.message)


@dataclass
class Running:
    """A task that was started by this driver. ``child`` None: it could not be started."""

    folder: TaskFolder
    since: float
    deadline_seconds: float
    child: Child | None
    problem: str = ""
    block: str | None = None

    @property
    def over(self) -> bool:
        """It has ended; one that takes too long is ended."""
        if self.child is None or self.child.ended():
            return True
        if time.time() - self.since > self.deadline_seconds:
            self.child.stop(GRACE_SECONDS)
        return False

    @property
    def how(self) -> str:
        """How it ended, with the last line of its log."""
        if self.child is None:
            return self.problem
        return f"it {self.child.how}: {last_line(layout.read_text(self.folder.log))}"


def launch(
    folders: Layout,
    folder: TaskFolder,
    given: bytes,
    command: Sequence[str],
    deadline_seconds: float,
    *,
    block: str | None = None,
) -> Running:
    """Start a task."""
    for path in (folder.message, folder.state):
        path.unlink(missing_ok=True)
    layout.write(folder.input, given)
    now = time.time()
    try:
        child = start(command, folder.log, folders.processes, commands.own_environment())
    except StartError as error:
        return Running(folder, now, deadline_seconds, None, str(error), block)
    return Running(folder, now, deadline_seconds, child, block=block)


def look_canary(folder: TaskFolder, running: Running | None) -> Canary | None:
    """The preflight check as it stands."""
    ended = read_ended(folder)
    if ended is None and running is not None and running.over:
        ended = _conclude_canary(running)
    if ended is not None:
        return Canary(ended.state, ended.since, ended.failure)
    return None if running is None else Canary("running", running.since)


def look_analysis(folder: TaskFolder, running: Running | None) -> Analysis | None:
    """An analysis run as it stands."""
    ended = read_ended(folder)
    if ended is None and running is not None and running.over:
        ended = _conclude_analysis(running)
    if ended is not None:
        block = "superseded" if ended.superseded else ended.block
        return Analysis(ended.state, ended.since, block, ended.failure, ended.answer)
    return None if running is None else Analysis("running", running.since, running.block)


def read_ended(folder: TaskFolder) -> Ended | None:
    """How a task ended, if it did."""
    data = layout.read(folder.state)
    return None if data is None else Ended.model_validate_json(data)


def supersede(folder: TaskFolder) -> None:
    """An answer that a later run of the sweep replaces."""
    ended = read_ended(folder)
    if ended is not None and not ended.superseded:
        layout.write(folder.state, ended.model_copy(update={"superseded": True}).to_json())


def _conclude_canary(running: Running) -> Ended:
    data = layout.read(running.folder.message)
    try:
        answer = CanaryAnswer.model_validate_json(data or b"")
        reason = None if answer.ok else answer.reason or "PreflightRefused"
        ended = Ended(
            state="succeeded" if answer.ok else "failed", since=running.since, reason=reason, message=answer.message
        )
    except ValidationError:
        ended = Ended(state="failed", since=running.since, reason="RunnerFailed", message=running.how)
    layout.write(running.folder.state, ended.to_json())
    return ended


def _conclude_analysis(running: Running) -> Ended:
    data = layout.read(running.folder.message)
    try:
        answer = AnalysisAnswer.model_validate_json(data or b"")
        ended = Ended(state="succeeded", since=running.since, block=running.block, answer=answer)
    except ValidationError:
        ended = Ended(
            state="failed", since=running.since, block=running.block, reason="AnalysisFailed", message=running.how
        )
    layout.write(running.folder.state, ended.to_json())
    return ended
