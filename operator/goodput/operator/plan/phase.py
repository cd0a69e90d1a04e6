"""The phase of a sweep (DESIGN §5) with its reason: what it is doing, or what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from goodput.operator import reasons
from goodput.operator.observed import Failure, Trial
from goodput.operator.plan.analyses import final_state, latest_answer
from goodput.operator.plan.attempts import holds_slot, over
from goodput.operator.plan.cells import Tally
from goodput.operator.plan.view import View

Phase = Literal[
    "Pending",
    "Preflight",
    "Queued",
    "Running",
    "Suspended",
    "Finishing",
    "Succeeded",
    "PartiallyFailed",
    "Failed",
    "Cancelled",
]

COMPLETE = frozenset({"Succeeded", "PartiallyFailed"})
FAILED = frozenset({"Failed", "Cancelled"})
TERMINAL = COMPLETE | FAILED


@dataclass(frozen=True)
class Standing:
    """A phase, why, and in words."""

    phase: Phase
    reason: str
    message: str = ""

    @property
    def terminal(self) -> bool:
        """Nothing will happen any more."""
        return self.phase in TERMINAL


def preflight_passed(view: View) -> bool:
    """The canary succeeded, now or earlier: a trial exists only after it, and status remembers it."""
    canary = view.observed.canary
    return bool(
        view.observed.trials
        or (canary is not None and canary.state == "succeeded")
        or condition_is_true(view.observed.status, "PreflightPassed")
    )


def condition_is_true(status: Mapping[str, object], name: str) -> bool:
    """Whether a written status has a condition at True."""
    conditions = status.get("conditions")
    found = conditions if isinstance(conditions, (list, tuple)) else ()
    return any(item.get("type") == name and item.get("status") == "True" for item in found)


def last_error(view: View) -> Failure | None:
    """The failure of the trial that ended last with one; the canary's where it was refused."""
    canary = view.observed.canary
    if canary is not None and canary.failure is not None:
        return canary.failure
    failed = [
        (trial.memory.ended or 0.0, pair.block, pair.config, failure)
        for pair in view.pairs.values()
        for (_, trial), (end, failure) in zip(pair.attempts, pair.ends, strict=True)
        if failure is not None and end not in {"interrupted", "live"}
    ]
    return max(failed, key=lambda item: item[:3])[3] if failed else None


def standing(view: View, cells: Tally) -> Standing:  # noqa: PLR0911 - one return per case
    """Where the sweep stands."""
    if not preflight_passed(view):
        return _before(view)
    trials = [trial for _, trial in view.unclosed]
    if not trials and view.decided:
        final = final_state(view)
        if final in {"none", "running"}:
            return Standing("Finishing", "FinalAnalysis", "tables and report are being written")
        return _at_the_end(view, cells, analysed=final == "succeeded")
    if view.policy.suspend and not view.policy.cancel and not any(map(holds_slot, trials)):
        return Standing("Suspended", "Suspended", reasons.text("Suspended"))
    live = [trial for trial in trials if not over(trial)]
    waiting = [trial.server.waiting for trial in live if trial.server is not None and trial.server.waiting]
    if live and len(waiting) == len(live):
        return Standing("Queued", waiting[0].reason, waiting[0].message)
    if view.decided:
        return Standing("Finishing", "Stopping", view.stop.message if view.stop else "the last servers are going")
    return Standing("Running", "Measuring", _progress(live))


def _before(view: View) -> Standing:
    canary = view.observed.canary
    if canary is not None and canary.state == "failed":
        cause = canary.failure
        return Standing("Failed", "PreflightRefused", f"{cause.reason}: {cause.message}" if cause else "")
    if view.policy.cancel:
        return Standing("Cancelled", "Cancelled", reasons.text("Cancelled"))
    if canary is not None:
        return Standing("Preflight", "Preflight", "the object store is being checked")
    if view.policy.suspend:
        return Standing("Suspended", "Suspended", reasons.text("Suspended"))
    return Standing("Pending", "Pending", "the preflight check is about to start")


def _progress(live: list[Trial]) -> str:
    return f"{len(live)} of the trials running" if live else "the next server is about to start"


def _infeasible(view: View) -> str:
    """That no config can be recommended, where it is so: all cells were measured, and that is no success of theirs."""
    answer = latest_answer(view)
    return f"; infeasible: {answer.message}" if answer is not None and answer.verdict == "infeasible" else ""


def _at_the_end(view: View, cells: Tally, *, analysed: bool) -> Standing:  # noqa: PLR0911 - one return per case
    error = last_error(view)
    if view.policy.cancel:
        return Standing("Cancelled", "Cancelled", reasons.text("Cancelled"))
    if view.stop is not None and view.stop.reason == "MaxFailedConfigs":
        return Standing("Failed", view.stop.reason, view.stop.message)
    if cells.measured == 0:
        cause = error or view.stop
        return Standing("Failed", "NoValidCell", f"{cause.reason}: {cause.message}" if cause else "")
    if not analysed:
        return Standing("PartiallyFailed", "AnalysisFailed", reasons.text("AnalysisFailed"))
    missing = cells.void + cells.failed + cells.not_run
    if missing == 0:
        return Standing("Succeeded", "AllMeasured", reasons.text("AllMeasured") + _infeasible(view))
    if cells.not_run and view.stop is not None:
        return Standing("PartiallyFailed", view.stop.reason, f"{missing} cells have no result: {view.stop.message}")
    text = f": {error.reason}: {error.message}" if error else ""
    return Standing("PartiallyFailed", "CellsMissing", f"{missing} cells have no result{text}")
