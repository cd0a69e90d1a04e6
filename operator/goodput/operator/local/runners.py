"""The runner of a trial as a process: its live status, and its outcome."""

from __future__ import annotations

import time
from dataclasses import dataclass

import httpx
from pydantic import ValidationError

from goodput.operator.classify import last_line
from goodput.operator.local import layout
from goodput.operator.local.layout import TrialFolder
from goodput.operator.local.ports import HOST, Port
from goodput.operator.local.processes import Child
from goodput.operator.observed import Failure, Runner
from goodput.operator.plan.limits import RUNNER_GRACE_SECONDS
from goodput.runner.contract import Outcome, RunnerStatus

STATUS_SECONDS = 0.5
STATUS_EVERY_SECONDS = 1.0
"""The runner answers from the process that sends the load: it is not asked more often than a pod would be."""


@dataclass
class LocalRunner:
    """``child`` None: it could not be started, ``failure`` says why."""

    folder: TrialFolder
    port: Port
    since: float
    child: Child | None
    client: httpx.Client
    failure: Failure | None = None
    status: RunnerStatus | None = None
    asked: float = 0.0  # monotonic seconds

    def look(self) -> Runner:
        """The runner now."""
        if self.child is None:
            return Runner("failed", self.since, failure=self.failure)
        if self.child.ended():
            return self._ended(self.child)
        if time.monotonic() - self.asked >= STATUS_EVERY_SECONDS:
            self.status = live_status(self.client, self.port.number) or self.status
            self.asked = time.monotonic()
        return Runner("stopping" if self.child.stopping else "running", self.since, status=self.status)

    def stop(self) -> None:
        """Ask it to void its cell, commit and end."""
        if self.child is not None:
            self.child.stop(RUNNER_GRACE_SECONDS)

    def drop(self) -> None:
        """Forget it; it has ended, or had its time."""
        self.port.release()
        if self.child is not None:
            self.child.kill()

    def _ended(self, child: Child) -> Runner:
        outcome = read_outcome(self.folder)
        if outcome is not None:
            return Runner("finished", self.since, outcome=outcome, status=self.status)
        text = f"the runner {child.how}: {last_line(layout.read_text(self.folder.runner_log))}"
        return Runner("failed", self.since, failure=Failure("RunnerFailed", text))


def read_outcome(folder: TrialFolder) -> Outcome | None:
    """The outcome that a runner wrote, if it did."""
    data = layout.read(folder.outcome)
    try:
        return None if data is None else Outcome.model_validate_json(data)
    except ValidationError:
        return None


def live_status(client: httpx.Client, port: int) -> RunnerStatus | None:
    """What the runner is doing; None where it does not say."""
    try:
        answer = client.get(f"http://{HOST}:{port}/status", timeout=STATUS_SECONDS)
        return RunnerStatus.model_validate_json(answer.content) if answer.status_code == httpx.codes.OK else None
    except (httpx.HTTPError, ValidationError):
        return None
