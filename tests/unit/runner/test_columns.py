from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.analysis.schema.server import ServerColumns, ServerHistogram
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
    assert not columns.complete
    assert columns.running_mean is None
    assert columns.kv_usage_max is None
    assert columns.generation_tokens == 200


def test_no_closing_snapshot_leaves_deltas_unknown() -> None:
    columns = server_columns(OPENING, None, [sample(10), sample(11)], (10.0, 11.0), interval_seconds=0.5)
    assert columns.preemptions is None
    assert columns.requests_finished is None
    assert columns.running_mean == 1


def test_a_counter_that_is_not_exposed_is_null() -> None:
    bare = Snapshot(stamp=0.0, running=0, waiting=0)
    columns = server_columns(bare, bare, [], None, interval_seconds=0.5)
    assert columns.generation_tokens is None
    assert columns.kv_blocks is None
    assert columns.prefix_hit_ratio is None


def test_a_server_without_metrics_has_null_columns_and_the_reason() -> None:
    nothing = Snapshot(stamp=0.0, problem="NoServerMetrics: GET /metrics: 404")
    columns = server_columns(nothing, nothing, [], (0.0, 1.0), interval_seconds=0.5)
    assert columns == ServerColumns(complete=False, reason="NoServerMetrics: GET /metrics: 404")


def test_a_page_that_cannot_be_read_counts_as_no_sample() -> None:
    broken = [Snapshot(stamp=10 + k / 2, problem="NoServerMetrics: JSON") for k in range(5)]
    columns = server_columns(OPENING, CLOSING, broken, (10.0, 12.0), interval_seconds=0.5)
    assert (columns.complete, columns.samples, columns.running_mean) == (False, 0, None)
    assert columns.reason == "MetricsGap: no samples for 2.0 s of the window"


def test_gauges_tell_how_many_samples_they_rest_on() -> None:
    samples = [sample(k * 0.1, running=float(k)) for k in range(101)]
    samples[3] = samples[3].model_copy(update={"kv_usage": None})
    columns = server_columns(OPENING, CLOSING, samples, (0.0, 10.0), interval_seconds=0.5)
    assert (columns.running_p95, columns.running_max) == (95, 100)
    assert columns.gauge_samples == {"running": 101, "waiting": 101, "kv_usage": 100}
    assert columns.gap_seconds == pytest.approx(0.1)


def histogram(*counts: float, edges: tuple[float, ...] = (0.1, 0.5), total: float | None = 1.0) -> ServerHistogram:
    return ServerHistogram(edges=edges, counts=counts, total=total)


def test_histograms_are_deltas_per_bucket() -> None:
    before = OPENING.model_copy(update={"histograms": {"ttft": histogram(1, 2, 3, total=4.0)}})
    after = CLOSING.model_copy(update={"histograms": {"ttft": histogram(5, 2, 4, total=6.5)}})
    columns = server_columns(before, after, [], None, interval_seconds=0.5)
    assert columns.histograms == {"ttft": histogram(4, 0, 1, total=2.5)}
    ttft = columns.histograms["ttft"]
    assert (ttft.count, ttft.mean) == (5, 0.5)
    assert (ttft.within(0.1), ttft.within(0.5)) == (0.8, 0.8)
    assert ttft.within(0.3) is None, "an edge or nothing: no interpolation"
    assert ttft.within(None) is None


@pytest.mark.parametrize(
    "after",
    [
        {},
        {"ttft": histogram(1, 2, 3, edges=(0.1, 0.4))},
        {"ttft": histogram(0, 2, 3)},  # it went back
    ],
)
def test_a_histogram_that_cannot_be_subtracted_is_not_there(after: dict[str, ServerHistogram]) -> None:
    before = OPENING.model_copy(update={"histograms": {"ttft": histogram(1, 2, 3)}})
    closing = CLOSING.model_copy(update={"histograms": after})
    assert server_columns(before, closing, [], None, interval_seconds=0.5).histograms == {}


def test_an_empty_histogram_has_neither_mean_nor_share() -> None:
    empty = histogram(0, 0, 0, total=0.0)
    assert (empty.mean, empty.within(0.1)) == (None, None)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=50))
def test_means_lie_between_the_extremes(values: list[float]) -> None:
    samples = [sample(k * 0.5, running=value) for k, value in enumerate(values)]
    columns = server_columns(OPENING, CLOSING, samples, (0.0, samples[-1].stamp), interval_seconds=0.5)
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
