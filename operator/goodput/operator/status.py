"""The status of a sweep, exactly as it is written (DESIGN §5): counts and leaders, never a list of cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from goodput.operator import conditions
from goodput.operator.clock import parse_timestamp, timestamp
from goodput.operator.conditions import Condition, short
from goodput.operator.observed import Failure, Trial
from goodput.operator.plan.analyses import final_state, latest_answer
from goodput.operator.plan.attempts import over
from goodput.operator.plan.cells import Tally
from goodput.operator.plan.estimate import Estimate
from goodput.operator.plan.phase import COMPLETE, FAILED, Standing, last_error, preflight_passed
from goodput.operator.plan.view import View
from goodput.operator.sweep import Sweep, TrialId

CURRENT_ROWS = 10
TOP_ROWS = 10
FINISH_STEP_SECONDS = 60.0
"""``estimate.finishBy`` is left as it is while it moves less than this: a status write costs everyone."""

Status = dict[str, object]


def status(view: View, stands: Standing, cells: Tally, left: Estimate) -> Status:
    """The whole status; a field that is absent is to be removed."""
    sweep, now, before = view.sweep, view.now, view.observed.status
    error = last_error(view)
    written: Status = {
        "phase": stands.phase,
        "observedGeneration": sweep.generation,
        "evidence": sweep.evidence,
        "plan": _plan(sweep),
        "counts": _counts(view, cells),
        "progress": f"{sweep.planned_cells - cells.pending}/{sweep.planned_cells}",
        "current": [_current(trial_id, trial) for trial_id, trial in _live(view)[:CURRENT_ROWS]],
        "gpuHoursUsed": round(view.spent.gpu_seconds / 3600, 2),
        "resultsURI": results_uri(sweep),
        "conditions": conditions.merged(_conditions(view, stands, cells, error), before, sweep.generation, now),
        **view.clock.write(),
        **_leaders(view),
    }
    if error is not None:
        written["lastError"] = {"reason": error.reason, "message": short(error.message)}
    if stands.terminal:
        written["completedAt"] = before.get("completedAt") or timestamp(now)
    else:
        written["estimate"] = _estimate(view, stands, left)
    return written


def refused(generation: int, failure: Failure, before: Mapping[str, object], now: float) -> Status:
    """The status of a spec that cannot be resolved: Accepted=False, nothing was started."""
    found = (
        Condition("Accepted", "False", failure.reason, failure.message),
        Condition("Complete", "False", failure.reason),
        Condition("Failed", "True", failure.reason, failure.message),
    )
    return {
        "phase": "Failed",
        "observedGeneration": generation,
        "lastError": {"reason": failure.reason, "message": short(failure.message)},
        "completedAt": before.get("completedAt") or timestamp(now),
        "conditions": conditions.merged(found, before, generation, now),
    }


def results_uri(sweep: Sweep) -> str:
    """Folder of all that the sweep writes."""
    return f"{sweep.spec.results.uri.rstrip('/')}/sweep={sweep.folder}"


def _plan(sweep: Sweep) -> Status:
    return {
        "sentinel": sweep.sentinel,
        "configs": len(sweep.configs),
        "loads": len(sweep.loads),
        "blocks": len(sweep.blocks),
        "cells": sweep.planned_cells,
    }


def _counts(view: View, cells: Tally) -> Status:
    return {
        "measured": cells.measured,
        "void": cells.void,
        "failed": cells.failed,
        "pruned": cells.pruned,
        "notRun": cells.not_run,
        "pending": cells.pending,
        "lost": cells.lost,
        "trials": len(view.observed.trials),
        "failedConfigs": len(view.failed_configs),
    }


def _live(view: View) -> list[tuple[TrialId, Trial]]:
    return [(trial_id, trial) for trial_id, trial in view.unclosed if not over(trial)]


def step_name(trial: Trial) -> str:
    """What a trial is doing, in one word: the runner's own where it says so."""
    if trial.memory.ended is not None:
        return "stopping"
    if trial.runner is not None:
        return trial.runner.status.step if trial.runner.status is not None else "measuring"
    if trial.server is None:
        return "pending"
    return "queued" if trial.server.waiting is not None else "starting"


def _current(trial_id: TrialId, trial: Trial) -> Status:
    row: Status = {
        "config": trial_id.config,
        "block": trial_id.block,
        "attempt": trial_id.attempt,
        "step": step_name(trial),
    }
    if trial.runner is not None and trial.runner.status is not None and trial.runner.status.load is not None:
        row["load"] = trial.runner.status.load
    return row


def _estimate(view: View, stands: Standing, found: Estimate) -> Status:
    written: Status = {"trials": found.trials, "gpuHours": round(found.gpu_hours, 2)}
    if stands.phase in {"Suspended", "Queued"}:
        return written
    finish = view.now + found.remaining_seconds
    before = view.observed.status.get("estimate")
    said = parse_timestamp(before.get("finishBy")) if isinstance(before, Mapping) else None
    keep = said is not None and abs(said - finish) < FINISH_STEP_SECONDS
    return {**written, "finishBy": timestamp(said if keep and said is not None else finish)}


def _leaders(view: View) -> Status:
    answer = latest_answer(view)
    if answer is None:
        return {}
    written: Status = {}
    if answer.verdict is not None:
        written["verdict"] = {"name": answer.verdict, "reason": answer.reason, "message": short(answer.message)}
    config = view.sweep.by_id.get(answer.best.config) if answer.best is not None else None
    if answer.best is not None and config is not None:
        best: Status = {
            "engine": config.engine,
            "config": config.id,
            "label": config.label,
            "args": dict(config.swept),
            "verdict": answer.verdict,
            "load": answer.best.load,
            "goodput": answer.best.goodput,
            "interval": None if answer.best.interval is None else list(answer.best.interval),
        }
        written["best"] = {name: value for name, value in best.items() if value is not None}
    if answer.top:
        written["top"] = [row.model_dump(mode="json", exclude_none=True) for row in answer.top[:TOP_ROWS]]
    return written


def _conditions(view: View, stands: Standing, cells: Tally, error: Failure | None) -> tuple[Condition, ...]:
    complete, failed = stands.phase in COMPLETE, stands.phase in FAILED
    return (
        Condition("Accepted", "True", "SpecAccepted"),
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
            for _, trial in _live(view)
            if trial.runner is not None and trial.runner.status is not None and trial.runner.status.upload_error
        ),
        None,
    )
    if refused_upload is not None:
        return Condition("ResultsCommitted", "False", "UploadDenied", refused_upload)
    final = final_state(view)
    if final == "succeeded":
        return Condition("ResultsCommitted", "True", "TablesWritten", results_uri(view.sweep))
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
