"""The conditions of a sweep (DESIGN §5): what ``kubectl wait --for=condition=…`` can wait for."""

from __future__ import annotations

from typing import Literal

from goodput.operator.conditions import Condition
from goodput.operator.observed import Failure
from goodput.operator.plan.analyses import final_state
from goodput.operator.plan.attempts import over
from goodput.operator.plan.cells import Tally
from goodput.operator.plan.phase import COMPLETE, FAILED, Standing, preflight_passed
from goodput.operator.plan.view import View


def sweep_conditions(view: View, stands: Standing, cells: Tally, error: Failure | None) -> tuple[Condition, ...]:
    """All conditions as they hold now; ``error``: the last thing that went wrong."""
    complete, failed = stands.phase in COMPLETE, stands.phase in FAILED
    return (
        Condition("Accepted", "True", "SpecAccepted", "; ".join(view.sweep.warnings)),
        _preflight(view, stands),
        Condition(
            "Progressing", _flag(not stands.terminal and stands.phase != "Suspended"), stands.reason, stands.message
        ),
        _committed(view),
        Condition("Complete", _flag(complete), stands.reason, stands.message if complete else ""),
        Condition("Failed", _flag(failed), stands.reason, stands.message if failed else ""),
        _degraded(view, cells, error),
    )


def _flag(value: bool) -> Literal["True", "False"]:
    return "True" if value else "False"


def _preflight(view: View, stands: Standing) -> Condition:
    if preflight_passed(view):
        return Condition("PreflightPassed", "True", "CreateOnly", "the store keeps what was written first")
    canary = view.observed.canary
    if canary is not None and canary.failure is not None:
        return Condition("PreflightPassed", "False", canary.failure.reason, canary.failure.message)
    return Condition("PreflightPassed", "Unknown", stands.reason)


def _committed(view: View) -> Condition:
    """Tables are written; or why records cannot be stored."""
    refused_upload = next(
        (
            trial.runner.status.upload_error
            for _, trial in view.unclosed
            if not over(trial)
            and trial.runner is not None
            and trial.runner.status is not None
            and trial.runner.status.upload_error
        ),
        None,
    )
    if refused_upload is not None:
        return Condition("ResultsCommitted", "False", "UploadDenied", refused_upload)
    final = final_state(view)
    if final == "succeeded":
        return Condition("ResultsCommitted", "True", "TablesWritten", view.sweep.results_uri)
    if final == "failed":
        return Condition("ResultsCommitted", "False", "AnalysisFailed", _analysis_error(view))
    return Condition("ResultsCommitted", "Unknown", "Measuring")


def _analysis_error(view: View) -> str:
    failures = [analysis.failure for analysis in view.observed.analyses.values() if analysis.failure is not None]
    return f"{failures[-1].reason}: {failures[-1].message}" if failures else ""


def _degraded(view: View, cells: Tally, error: Failure | None) -> Condition:
    if view.failed_configs or cells.failed or cells.void or cells.lost:
        reason = error.reason if error is not None else "CellsMissing"
        text = f"{len(view.failed_configs)} configs failed; {cells.failed + cells.void} cells without a result"
        return Condition("Degraded", "True", reason, text if error is None else f"{text}; {error.message}")
    return Condition("Degraded", "False", "AsPlanned")
