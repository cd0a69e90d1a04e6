"""How much is left: from the plan's estimate at first, from the trials that have run as soon as there are any."""

from __future__ import annotations

from dataclasses import dataclass

from goodput.analysis.schema.base import PRIME
from goodput.operator.plan.attempts import Pair
from goodput.operator.plan.view import View
from goodput.operator.spec.estimate import START_SECONDS


@dataclass(frozen=True)
class Estimate:
    """Of the whole sweep: server starts and GPU hours; and the seconds that are left."""

    trials: int
    gpu_hours: float
    remaining_seconds: float


def estimate(view: View) -> Estimate:
    """What the sweep takes if every open pair needs one more attempt."""
    planned = max(1, len(view.pairs))
    servers = min(view.policy.parallelism, len(view.sweep.configs))
    per_trial = _measured_seconds(view) or view.sweep.estimate_seconds * servers / planned
    trials = 0
    waiting = running = 0.0
    for pair in view.pairs.values():
        if view.fate(pair)[0] != "open":
            continue
        begun = [trial.memory.created for _, trial in pair.attempts if trial.memory.ended is None]
        if begun:
            running += max(0.0, _seconds(view, pair, per_trial) - (view.now - begun[-1]))
        elif not pair.live:
            trials += 1
            waiting += _seconds(view, pair, per_trial)
    share = (running + waiting) / servers
    per_trial_gpu_hours = view.sweep.estimate_gpu_hours / planned
    left_gpu_hours = (running + waiting) / per_trial * per_trial_gpu_hours if per_trial else 0.0
    return Estimate(
        trials=len(view.observed.trials) + trials,
        gpu_hours=view.spent.gpu_seconds / 3600 + left_gpu_hours,
        remaining_seconds=share,
    )


def _seconds(view: View, pair: Pair, per_trial: float) -> float:
    """Expected of one attempt; one that fills the compile cache is a start and no more."""
    return START_SECONDS[view.sweep.by_id[pair.config].kind] if pair.block == PRIME else per_trial


def _measured_seconds(view: View) -> float | None:
    """Mean wall time of the trials that measured everything that was asked."""
    times = [
        trial.memory.server_gone - trial.memory.created
        for pair in view.pairs.values()
        for (_, trial), (end, _) in zip(pair.attempts, pair.ends, strict=True)
        if end == "done" and pair.block != PRIME and trial.memory.server_gone is not None
    ]
    return sum(times) / len(times) if times else None
