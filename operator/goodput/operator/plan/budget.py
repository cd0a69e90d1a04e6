"""When no further server is started: cancelled, out of time, trials or GPU hours, too many failed configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from goodput.operator import reasons
from goodput.operator.clock import Clock
from goodput.operator.observed import Failure, Trial
from goodput.operator.plan.attempts import gpu_seconds
from goodput.operator.plan.policy import Policy
from goodput.operator.sweep import Sweep, TrialId

ENDS_WAITING_SERVERS = frozenset({"BudgetDeadline", "BudgetMaxGpuHours", "MaxFailedConfigs"})
"""Reasons that also end a trial whose runner has not been started; a running measurement is let finish."""


@dataclass(frozen=True)
class Spent:
    """What was used so far."""

    trials: int
    gpu_seconds: float
    seconds: float  # unsuspended
    failed_configs: int


def spent(sweep: Sweep, trials: Mapping[TrialId, Trial], clock: Clock, failed_configs: int, now: float) -> Spent:
    """What the sweep has used, running trials included."""
    return Spent(
        trials=len(trials),
        gpu_seconds=sum(gpu_seconds(sweep, trial_id, trial, now) for trial_id, trial in trials.items()),
        seconds=clock.active_seconds(now),
        failed_configs=failed_configs,
    )


def stop(policy: Policy, used: Spent, *, finishing: bool) -> Failure | None:
    """Why no further server is started, if so."""
    if policy.cancel:
        return Failure("Cancelled", reasons.text("Cancelled"))
    if policy.max_failed_configs is not None and used.failed_configs > policy.max_failed_configs:
        text = f"{used.failed_configs} configs failed, budget.maxFailedConfigs is {policy.max_failed_configs}"
        return Failure("MaxFailedConfigs", text)
    if policy.deadline_seconds is not None and used.seconds >= policy.deadline_seconds:
        return Failure("BudgetDeadline", reasons.text("BudgetDeadline"))
    if policy.max_trials is not None and used.trials >= policy.max_trials:
        return Failure("BudgetMaxTrials", reasons.text("BudgetMaxTrials"))
    if policy.max_gpu_seconds is not None and used.gpu_seconds >= policy.max_gpu_seconds:
        return Failure("BudgetMaxGpuHours", reasons.text("BudgetMaxGpuHours"))
    return Failure("Finishing", reasons.text("Finishing")) if finishing else None
