"""The life of a trial: remembered, server, runner, outcome noted, logs saved, server and runner gone.

Each look asks only for what the last one showed to be missing, so a step that was lost is asked for again
and one that was done is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from goodput.operator.actions import (
    Action,
    DropRunner,
    Note,
    SaveLogs,
    StartRunner,
    StartServer,
    StopRunner,
    StopServer,
)
from goodput.operator.observed import Memory, Trial
from goodput.operator.plan.attempts import over, runner_active
from goodput.operator.plan.ending import Ending, Terms, ending, server_cause, wait_until
from goodput.operator.plan.limits import LOGS_TIMEOUT_SECONDS, RUNNER_BACKSTOP_SECONDS, RUNNER_GRACE_SECONDS
from goodput.operator.sweep import TrialId
from goodput.runner.contract import Outcome

CAUSE_SECONDS = 5.0
"""How long a server that the runner found gone is kept, so that the driver can see why (the kubelet reports
the end of a container within a second or two)."""

PRIMED = Outcome(planned=0, valid=0)
"""A start that only fills the compile cache has done all it was for once its server is ready."""

LOST_SERVER = frozenset({"ServerGone", "ServerRestarted", "EngineDead"})
"""Open cells with these reasons may have a cause that only the driver sees."""


@dataclass(frozen=True)
class Step:
    """What one trial needs now, and when to look again at the latest (Unix seconds)."""

    actions: tuple[Action, ...] = ()
    look: float | None = None


def step(trial_id: TrialId, trial: Trial, terms: Terms) -> Step:
    """The next actions of a trial that is not `closed`."""
    end = ending(trial, terms) if trial.memory.ended is None else None
    note = _note(trial_id, trial, end, terms.now)
    notes: tuple[Action, ...] = () if note is None else (note,)
    if end is not None:
        return Step(notes)  # nothing is stopped before the reason is on record
    if trial.memory.ended is not None:
        return _winding_down(trial_id, trial, terms, notes)
    wait = wait_until(trial, terms)
    released = trial.memory.released is not None
    actions = _release(trial_id, trial) if released else _forward(trial_id, trial, terms)
    return Step((*notes, *actions), wait[0] if wait else None)


def closed(trial: Trial, now: float) -> bool:
    """Over, its runner deleted, its logs saved (or given up)."""
    if not over(trial) or trial.runner is not None:
        return False
    memory = trial.memory
    return memory.logs in {"saved", "uploaded"} or now >= (memory.ended or now) + LOGS_TIMEOUT_SECONDS


def _note(trial_id: TrialId, trial: Trial, end: Ending | None, now: float) -> Note | None:
    """All that this look shows and the memory does not have yet, in one write."""
    memory, server, runner = trial.memory, trial.server, trial.runner
    note = Note(trial_id)
    if server is not None and server.running is not None and memory.server_running is None:
        note = replace(note, server_running=server.running)
    if server is not None and server.ready is not None and memory.server_ready is None:
        note = replace(note, server_ready=server.ready)
    if runner is not None and runner.outcome is not None and memory.outcome is None:
        note = replace(note, outcome=runner.outcome)
    if trial_id.primes and _ready(trial) and memory.outcome is None and memory.ended is None:
        note = replace(note, outcome=PRIMED)
    if _released(trial):
        note = replace(note, released=now)
    if server is None and memory.server_gone is None and (memory.ended is not None or memory.released is not None):
        note = replace(note, server_gone=now)
    if end is not None:
        note = replace(note, ended=now, failure=end.failure, interrupted=end.interrupted or None)
    elif _late_cause(memory, trial):
        note = replace(note, failure=server_cause(trial))
    return None if note == Note(trial_id) else note


def _released(trial: Trial) -> bool:
    """The store refuses, everything is measured: the runner waits on without its server."""
    status = trial.runner.status if trial.runner is not None else None
    waits = status is not None and not status.measuring and status.upload_error is not None
    return waits and trial.memory.released is None and trial.memory.ended is None


def _late_cause(memory: Memory, trial: Trial) -> bool:
    """The trial ended with open cells before the driver could see why its server failed."""
    done = memory.outcome is not None and memory.outcome.done
    waits = memory.ended is not None and memory.failure is None and memory.server_gone is None
    return waits and not done and memory.released is None and server_cause(trial) is not None


def _forward(trial_id: TrialId, trial: Trial, terms: Terms) -> Iterator[Action]:
    if trial.server is None:
        if terms.may_start:
            yield StartServer(trial_id)
    elif _ready(trial) and trial.runner is None and not trial_id.primes:
        yield StartRunner(trial_id)


def _ready(trial: Trial) -> bool:
    return trial.server is not None and trial.server.state == "ready"


def _release(trial_id: TrialId, trial: Trial) -> Iterator[Action]:
    if trial.server is None or trial.server.state == "stopping":
        return
    if trial.memory.logs == "none":
        yield SaveLogs(trial_id, final=False)
    else:
        yield StopServer(trial_id)


def _stop_runner(trial_id: TrialId, trial: Trial) -> Iterator[Action]:
    if trial.runner is not None and trial.runner.state in {"pending", "running"}:
        yield StopRunner(trial_id)


def _winding_down(trial_id: TrialId, trial: Trial, terms: Terms, notes: tuple[Action, ...]) -> Step:
    """After the decision: the runner ends, the logs are saved, server and runner go. Each wait has an end."""
    ended = trial.memory.ended or terms.now
    forced = ended + RUNNER_GRACE_SECONDS + RUNNER_BACKSTOP_SECONDS
    if runner_active(trial) and terms.now < forced:
        return Step((*notes, *_stop_runner(trial_id, trial)), forced)
    if _cause_may_come(trial) and terms.now < ended + CAUSE_SECONDS:
        return Step(notes, ended + CAUSE_SECONDS)
    if trial.memory.logs in {"none", "server"} and terms.now < ended + LOGS_TIMEOUT_SECONDS:
        return Step((*notes, SaveLogs(trial_id)), ended + LOGS_TIMEOUT_SECONDS)
    return Step((*notes, *_deletions(trial_id, trial)))


def _deletions(trial_id: TrialId, trial: Trial) -> Iterator[Action]:
    if trial.server is not None and trial.server.state != "stopping":
        yield StopServer(trial_id)
    runner = trial.runner
    if runner is None or runner.state == "stopping":
        return
    if runner.outcome is None or trial.memory.outcome is not None:
        yield DropRunner(trial_id)


def _cause_may_come(trial: Trial) -> bool:
    memory = trial.memory
    if memory.failure is not None or memory.outcome is None or trial.server is None:
        return False
    return any(cell.reason in LOST_SERVER for cell in memory.outcome.open)
