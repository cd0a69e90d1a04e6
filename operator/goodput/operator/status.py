"""The status of a sweep, exactly as it is written (DESIGN §5): counts and leaders, never a list of cells."""

from __future__ import annotations

from collections.abc import Mapping

from goodput.operator import conditions
from goodput.operator.clock import parse_timestamp, timestamp
from goodput.operator.conditions import Condition, short
from goodput.operator.observed import Failure, Trial
from goodput.operator.plan.analyses import latest_answer
from goodput.operator.plan.attempts import over
from goodput.operator.plan.cells import Tally
from goodput.operator.plan.estimate import Estimate
from goodput.operator.plan.phase import Standing, last_error
from goodput.operator.plan.view import View
from goodput.operator.sweep import Sweep, TrialId
from goodput.operator.sweep_conditions import sweep_conditions

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
        "resultsURI": sweep.results_uri,
        "conditions": conditions.merged(sweep_conditions(view, stands, cells, error), before, sweep.generation, now),
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


def _plan(sweep: Sweep) -> Status:
    return {
        "sentinel": sweep.sentinel,
        "configs": len(sweep.configs),
        "loads": len(sweep.loads),
        "blocks": len(sweep.blocks),
        "cells": sweep.planned_cells,
        **({"primes": len(sweep.primes)} if sweep.primes else {}),
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
    """What a trial is doing, in one word: the runner's own where it says so, ``running`` where it does not."""
    if trial.memory.ended is not None:
        return "stopping"
    if trial.runner is not None:
        return trial.runner.status.step if trial.runner.status is not None else "running"
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


def _brief(value: float | None) -> float | None:
    """Four decimals: the status is read by people; the tables have every digit."""
    return None if value is None else round(value, 4)


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
            "goodput": _brief(answer.best.goodput),
            "interval": None if answer.best.interval is None else [_brief(end) for end in answer.best.interval],
        }
        written["best"] = {name: value for name, value in best.items() if value is not None}
    if answer.top:
        written["top"] = [row.model_dump(mode="json", exclude_none=True) for row in answer.top[:TOP_ROWS]]
    return written
