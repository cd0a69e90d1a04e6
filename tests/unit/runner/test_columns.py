from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.runner.columns import samples_table, server_columns
from goodput.runner.snapshot import Snapshot

OPENING = Snapshot(
    stamp=0.0,
    start_time=1.0,
    running=0,
    waiting=0,
    kv_usage=0.0,
    preemptions=2,
    prompt_tokens=100,
    generation_tokens=50,
    prefix_queries=100,
    prefix_hits=10,
    finished={"length": 3, "abort": 0},
    kv_blocks=1000,
    block_size=16,
)
CLOSING = OPENING.model_copy(
    update={
        "stamp": 30.0,
        "preemptions": 7,
        "prompt_tokens": 400,
        "generation_tokens": 250,
        "prefix_queries": 400,
        "prefix_hits": 10,
        "finished": {"length": 13, "abort": 1},
    }
)


def sample(stamp: float, running: float = 1.0, kv: float = 0.5) -> Snapshot:
    return OPENING.model_copy(update={"stamp": stamp, "running": running, "kv_usage": kv, "waiting": 0})


def test_counters_are_deltas_and_gauges_cover_the_window() -> None:
    samples = [sample(1.0, running=99), *(sample(10 + k / 2, running=k, kv=k / 10) for k in range(5)), sample(13, 99)]
    columns = server_columns(OPENING, CLOSING, samples, (10.0, 12.0), interval_seconds=0.5)
    assert columns is not None
    assert columns.complete
    assert columns.samples == 5
    assert (columns.preemptions, columns.prompt_tokens, columns.generation_tokens) == (5, 300, 200)
    assert columns.requests_finished == {"abort": 1, "length": 10}
    assert columns.prefix_hit_ratio == 0
    assert (columns.running_mean, columns.running_max) == (2, 4)
    assert columns.kv_usage_max == pytest.approx(0.4)
    assert (columns.kv_blocks, columns.block_size) == (1000, 16)


@pytest.mark.parametrize(
    "stamps",
    [
        (),
        (10.0, 10.5, 12.1),  # a hole in the middle
        (11.6, 12.0),  # late
        (10.0, 10.4),  # nothing at the end
    ],
)
def test_a_hole_of_more_than_three_intervals_nulls_the_gauges_only(stamps: tuple[float, ...]) -> None:
    columns = server_columns(OPENING, CLOSING, [sample(stamp) for stamp in stamps], (10.0, 12.1), interval_seconds=0.5)
    assert columns is not None
    assert not columns.complete
    assert columns.running_mean is None
    assert columns.kv_usage_max is None
    assert columns.generation_tokens == 200


def test_no_closing_snapshot_leaves_deltas_unknown() -> None:
    columns = server_columns(OPENING, None, [sample(10), sample(11)], (10.0, 11.0), interval_seconds=0.5)
    assert columns is not None
    assert columns.preemptions is None
    assert columns.requests_finished is None
    assert columns.running_mean == 1


def test_a_counter_that_is_not_exposed_is_null() -> None:
    bare = Snapshot(stamp=0.0, running=0, waiting=0)
    columns = server_columns(bare, bare, [], None, interval_seconds=0.5)
    assert columns is not None
    assert columns.generation_tokens is None
    assert columns.kv_blocks is None
    assert columns.prefix_hit_ratio is None


def test_a_server_without_metrics_has_no_columns() -> None:
    nothing = Snapshot(stamp=0.0)
    assert server_columns(nothing, nothing, [], (0.0, 1.0), interval_seconds=0.5) is None


@given(st.lists(st.floats(0, 100), min_size=1, max_size=50))
def test_means_lie_between_the_extremes(values: list[float]) -> None:
    samples = [sample(k * 0.5, running=value) for k, value in enumerate(values)]
    columns = server_columns(OPENING, CLOSING, samples, (0.0, samples[-1].stamp), interval_seconds=0.5)
    assert columns is not None
    assert columns.running_max == max(values)
    assert columns.running_mean is not None
    assert min(values) - 1e-9 <= columns.running_mean <= max(values) + 1e-9


def test_the_samples_table_counts_from_the_cells_start() -> None:
    table = samples_table([sample(10.5), Snapshot(stamp=11.0)], started=10.0)
    assert table["t_s"].to_pylist() == [0.5, 1.0]
    assert table["running"].to_pylist() == [1.0, None]
    assert table.column_names == [
        *("t_s", "running", "waiting", "kv_usage", "preemptions", "prompt_tokens", "generation_tokens")
    ]
