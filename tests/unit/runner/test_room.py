from __future__ import annotations

import pytest

from goodput.analysis.schema.planned import Load
from goodput.runner import expect
from goodput.runner.contract import PlannedLoad
from goodput.runner.room import cell_bytes


def closed(**window: float) -> Load:
    return Load(prompt_tokens=100, output_tokens=64, arrival="closed", concurrency=64, **window)


def test_a_closed_loop_by_count_has_little_more_than_its_requests_however_long_they_may_take() -> None:
    assert expect.most_requests(closed(window_requests=2000), 5000) == 2000 + 4 * 64
    assert expect.most_requests(closed(window_requests=2000), 1) == pytest.approx(64 * 200 / 64)


def test_a_closed_loop_by_time_has_as_many_as_the_fastest_server_takes() -> None:
    assert expect.most_requests(closed(window_seconds=10), 80) == pytest.approx(64 * 80 * 200 / 64)


def test_an_open_loop_has_its_arrivals() -> None:
    load = Load(prompt_tokens=100, output_tokens=64, arrival="poisson", request_rate=5, window_seconds=60)
    assert expect.most_requests(load, 100) == 500
    burst = Load(prompt_tokens=100, output_tokens=64, arrival="burst", window_requests=300)
    assert expect.most_requests(burst, 1000) == 300


def test_the_room_of_a_cell_follows_its_requests() -> None:
    counted = PlannedLoad(load=closed(window_requests=2000), seed=1, lead_in_seconds=150, drain_seconds=3000)
    assert cell_bytes(counted) < 1 << 30
