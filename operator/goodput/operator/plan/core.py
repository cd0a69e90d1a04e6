"""`plan`: from what is seen to what is to be done. Pure, level-triggered, total: no step depends on the last call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from goodput.operator.actions import Action, CleanUp, StartCanary
from goodput.operator.clock import parse_timestamp
from goodput.operator.observed import Failure, Observed, Trial
from goodput.operator.plan.analyses import final_state, new_analysis, stored_logs
from goodput.operator.plan.attempts import holds_slot
from goodput.operator.plan.blocks import new_trials
from goodput.operator.plan.cells import tally
from goodput.operator.plan.ending import Terms
from goodput.operator.plan.estimate import estimate
from goodput.operator.plan.limits import RESYNC_SECONDS, RUNNER_BACKSTOP_SECONDS, UPLOAD_HOLD_SECONDS
from goodput.operator.plan.phase import TERMINAL, preflight_passed, standing
from goodput.operator.plan.policy import Policy
from goodput.operator.plan.trials import step
from goodput.operator.plan.view import View, look
from goodput.operator.status import status
from goodput.operator.sweep import Sweep, TrialId


@dataclass(frozen=True)
class Plan:
    """What to do now, what to write, and when to look again at the latest (seconds from now).

    ``status`` is the whole status: write it when it differs from the one that was observed, after the actions.
    ``next_look_seconds`` None: nothing is left to do, ever. ``remaining_seconds``: how long the sweep may still
    take, None once it has ended.
    """

    actions: tuple[Action, ...]
    status: Mapping[str, object]
    next_look_seconds: float | None
    remaining_seconds: float | None = None


def plan(sweep: Sweep, observed: Observed, now: float) -> Plan:
    """The next actions and the desired status of a sweep. ``now``: Unix seconds."""
    if observed.status.get("phase") in TERMINAL:
        return _finished(sweep, observed, now)
    view = look(sweep, observed, now)
    actions, looks = _actions(view)
    cells = tally(view)
    stands = standing(view, cells)
    looks.extend(_budget_looks(view))
    seconds = min((moment - now for moment in looks), default=RESYNC_SECONDS)
    left = estimate(view)
    return Plan(
        actions=tuple(actions),
        status=status(view, stands, cells, left),
        next_look_seconds=0.0 if stands.terminal else min(RESYNC_SECONDS, max(0.05, seconds)),
        remaining_seconds=None if stands.terminal else left.remaining_seconds,
    )


def _finished(sweep: Sweep, observed: Observed, now: float) -> Plan:
    """A sweep whose status says terminal stays so; its children go when their time has come."""
    completed = parse_timestamp(observed.status.get("completedAt"))
    left = Policy.of(sweep).ttl_seconds - (now - (completed if completed is not None else now))
    children = bool(observed.canary or observed.trials or observed.analyses)
    if not children:
        return Plan((), observed.status, None)
    if left > 0:
        return Plan((), observed.status, left)
    return Plan((CleanUp(),), observed.status, RESYNC_SECONDS)


def _actions(view: View) -> tuple[list[Action], list[float]]:
    if not preflight_passed(view):
        held = view.policy.suspend or view.policy.cancel or view.observed.canary is not None
        return ([] if held else [StartCanary()]), []
    actions: list[Action] = []
    looks: list[float] = []
    for trial_id, trial, terms in _steps(view):
        found = step(trial_id, trial, terms)
        actions.extend(found.actions)
        if found.look is not None:
            looks.append(found.look)
    actions.extend(new_trials(view))
    if final_state(view) != "failed":
        actions.extend(new_analysis(view))
    actions.extend(stored_logs(view))
    return actions, looks


def _steps(view: View) -> Iterator[tuple[TrialId, Trial, Terms]]:
    """All trials that are not closed, with the terms that hold for them."""
    allowed = _may_start(view)
    interrupt = _interrupt(view)
    for trial_id, trial in view.unclosed:
        if trial_id.config not in view.sweep.by_id:
            continue
        engine = view.sweep.engines[view.sweep.by_id[trial_id.config].engine]
        yield (
            trial_id,
            trial,
            Terms(
                now=view.now,
                startup_timeout_seconds=engine.startup_timeout_seconds,
                runner_limit_seconds=view.sweep.trial_deadline_seconds + UPLOAD_HOLD_SECONDS + RUNNER_BACKSTOP_SECONDS,
                interrupt=interrupt,
                unwanted=view.unwanted(trial_id.config),
                may_start=trial_id in allowed,
            ),
        )


def _interrupt(view: View) -> Failure | None:
    if view.policy.cancel:
        return Failure("Cancelled", "spec.cancel is set")
    return Failure("Suspended", "spec.suspend is set") if view.policy.suspend else None


def _may_start(view: View) -> frozenset[TrialId]:
    """Trials without a server that the free slots can take, the oldest first."""
    holding = [
        (trial.memory.order, trial_id, trial) for trial_id, trial in view.observed.trials.items() if holds_slot(trial)
    ]
    free = view.policy.parallelism - sum(trial.server is not None for _, _, trial in holding)
    waiting = [trial_id for _, trial_id, trial in sorted(holding, key=lambda item: item[:2]) if trial.server is None]
    return frozenset(waiting[: max(0, free)])


def _budget_looks(view: View) -> Iterator[float]:
    if view.policy.deadline_seconds is not None and view.clock.suspended is None:
        moment = view.now + view.policy.deadline_seconds - view.spent.seconds
        if moment > view.now:
            yield moment
