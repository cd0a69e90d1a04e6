"""What happened between two looks, one line per event. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from goodput.operator.observed import Analysis, Observed, Trial
from goodput.operator.sweep import Sweep, TrialId


def events(sweep: Sweep, before: Observed, after: Observed) -> Iterator[str]:
    """The lines that a person wants to read."""
    yield from _canary(before, after)
    for trial_id, trial in sorted(after.trials.items(), key=lambda item: item[1].memory.order):
        name, old = _name(sweep, trial_id), before.trials.get(trial_id)
        if old is None and trial.memory.ended is None:
            yield f"{name}: {_start(sweep, trial_id, trial)}"
        yield from (f"{name}: {text}" for text in _trial(sweep, old, trial))
    for generation, analysis in sorted(after.analyses.items()):
        yield from _analysis(before.analyses.get(generation), analysis)


def _canary(before: Observed, after: Observed) -> Iterator[str]:
    state = after.canary.state if after.canary is not None else None
    if state == (before.canary.state if before.canary is not None else None):
        return
    if state == "running":
        yield "checking the object store"
    elif state == "succeeded":
        yield "the object store is writable and keeps what was written first"
    elif after.canary is not None and after.canary.failure is not None:
        yield f"the preflight check failed: {after.canary.failure.reason}: {after.canary.failure.message}"


def _name(sweep: Sweep, trial: TrialId) -> str:
    config = sweep.by_id.get(trial.config)
    name = trial.config if config is None else config.label
    return f"filling the compile cache · {name}" if trial.primes else f"block {trial.block} · {name}"


def _trial(sweep: Sweep, before: Trial | None, after: Trial) -> Iterator[str]:
    old, new = None if before is None else before.memory, after.memory
    if new.server_ready is not None and (old is None or old.server_ready is None):
        yield f"ready after {new.server_ready - (new.server_running or new.created):.1f} s"
    load = _load(after)
    if load is not None and load != (None if before is None else _load(before)):
        labels = {step.load.id: step.load.label for step in sweep.loads}
        yield f"measuring {labels.get(load, load)}"
    if new.ended is not None and (old is None or old.ended is None):
        yield _end(after)


def _start(sweep: Sweep, trial_id: TrialId, trial: Trial) -> str:
    url = sweep.address(trial_id.config) if trial_id.config in sweep.by_id else None
    order = trial.memory.order
    return f"server start {order}" if url is None else f"trial {order}, on the server at {url}"


def _load(trial: Trial) -> str | None:
    status = trial.runner.status if trial.runner is not None else None
    return status.load if status is not None else None


def _end(trial: Trial) -> str:
    memory = trial.memory
    outcome = memory.outcome or (trial.runner.outcome if trial.runner is not None else None)
    measured = "" if outcome is None else f"{outcome.valid} of {outcome.planned} loads have a result"
    if outcome is not None and outcome.done:
        return f"done, {measured}" if outcome.planned else "done"
    if memory.interrupted:
        return "stopped, the running measurement is void"
    if memory.failure is not None:
        return f"failed: {memory.failure.reason}: {memory.failure.message}"
    reasons = sorted({cell.reason for cell in outcome.open}) if outcome is not None else []
    return f"{measured}; the others: {', '.join(reasons)}"


def _analysis(before: Analysis | None, after: Analysis) -> Iterator[str]:
    if before is not None and before.state == after.state:
        return
    when = "of the whole sweep" if after.block is None else f"after block {after.block}"
    if after.state == "succeeded":
        verdict = after.answer.verdict if after.answer is not None else None
        yield f"tables {when} are written" + (f", so far: {verdict}" if verdict else "")
    elif after.state == "failed":
        yield f"tables {when} could not be written: {after.failure.message if after.failure else ''}"
