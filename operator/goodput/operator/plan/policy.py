"""The few fields of the spec that decide when the planner acts, in seconds and plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from goodput.operator.sweep import Sweep


@dataclass(frozen=True)
class Policy:
    """What may change while a sweep runs (budget, suspend, cancel, parallelism), and the retries."""

    parallelism: int
    retries: int
    suspend: bool
    cancel: bool
    max_trials: int | None
    max_gpu_seconds: float | None
    deadline_seconds: float | None  # unsuspended time
    max_failed_configs: int | None
    ttl_seconds: float  # how long children outlive the end

    @classmethod
    def of(cls, sweep: Sweep) -> Policy:
        """The policy of a resolved sweep."""
        spec = sweep.spec
        hours = spec.budget.max_gpu_hours
        return cls(
            parallelism=spec.plan.parallelism,
            retries=spec.plan.retries,
            suspend=spec.suspend,
            cancel=spec.cancel,
            max_trials=spec.budget.max_trials,
            max_gpu_seconds=None if hours is None else hours * 3600,
            deadline_seconds=spec.budget.deadline_seconds,
            max_failed_configs=spec.budget.max_failed_configs,
            ttl_seconds=spec.retention.ttl_after_finished_seconds or 0.0,
        )
