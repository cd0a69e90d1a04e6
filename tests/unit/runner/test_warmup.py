"""What a cell says of a warm-up that its cap ended."""

from __future__ import annotations

import pytest

from goodput.runner.contract import TrialPlan
from goodput.runner.warmup import Warmup, cap_warnings


@pytest.mark.parametrize(
    ("concurrency", "done", "why"),
    [
        (64, 81, "128 are needed to tell"),
        (64, 128, "latencies still moved"),
        (4, 49, "50 are needed to tell"),
        (4, 50, "latencies still moved"),
    ],
)
def test_a_cap_says_what_was_missing(plan: TrialPlan, concurrency: int, done: int, why: str) -> None:
    plan = plan.model_copy(update={"warmup_max_seconds": 3.0, "warmup_concurrency": concurrency})
    assert cap_warnings(Warmup(3.0, done, steady=False), plan) == (
        f"warm-up was not steady after 3 s: {done} requests had completed, {why}; raise workload.warmup.max",
    )


@pytest.mark.parametrize("warmup", [Warmup(), Warmup(3.0, 200, steady=True)])
def test_no_warm_up_and_a_steady_one_are_no_warning(plan: TrialPlan, warmup: Warmup) -> None:
    assert cap_warnings(warmup, plan) == ()
