from __future__ import annotations

import pytest

from goodput.analysis.schema.planned import Load, Stage
from goodput.runner.load.workers import workers


def open_loop(rate: float) -> Load:
    return Load(prompt_tokens=8, output_tokens=100, arrival="poisson", request_rate=rate, window_seconds=1)


@pytest.mark.parametrize(
    ("rate", "cores", "expected"),
    [
        (1, 16, 1),
        (250, 16, 1),  # 25,000 events/s: a quarter of the ceiling
        (251, 16, 2),
        (1000, 16, 4),
        (1000, 4, 3),  # a core is left for the rest
        (1000, 2.5, 1),
        (1000, 0.5, 1),
    ],
)
def test_workers_follow_the_load_as_far_as_there_are_cores(rate: float, cores: float, expected: int) -> None:
    assert workers(open_loop(rate), 100_000, cores) == expected


def test_stages_need_workers_for_their_highest_rate_and_a_trace_for_its_speed() -> None:
    stages = (Stage(duration_seconds=1, rate=1), Stage(duration_seconds=1, rate=1, end_rate=1000))
    ramp = Load(prompt_tokens=8, output_tokens=100, arrival="poisson", stages=stages, window_seconds=2)
    assert workers(ramp, 100_000, 64) == workers(open_loop(1000), 100_000, 64)
    trace = Load(dataset="trace", dataset_uri="file:///t.csv", arrival="replay", speed=1, window_seconds=2)
    assert workers(trace, 100_000, 64) == 1
    assert workers(trace.model_copy(update={"speed": 100.0}), 100_000, 64) > 1


def test_a_closed_loop_needs_workers_for_its_streams() -> None:
    load = Load(prompt_tokens=8, output_tokens=100, arrival="closed", concurrency=1000, window_seconds=1)
    assert workers(load, 100_000, 64) == 4
    assert workers(load, None, 64) > 4
