"""Cells in virtual time against a queue whose truth is known: one request at a time, exactly 0.1 s each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.runner.virtual.conftest import started

from goodput.analysis.records import missing_columns
from goodput.runner.load.cell import CellRecords
from goodput.runner.snapshot import parse
from goodput.runner.virtual.engine import pass_time, sample

Run = Callable[..., CellRecords]


def test_below_its_rate_the_server_answers_at_once(run: Run) -> None:
    records = run(arrival="constant", request_rate=5, window_seconds=10, lead_in=2)
    rows = records.requests.to_pylist()
    window = [row for row in rows if row["in_window"]]
    assert len(window) == records.counts.attempted == records.counts.completed == 50
    assert missing_columns(records.requests) == []
    for row in window:
        assert row["sent_s"] == row["planned_s"]
        assert row["last_s"] - row["planned_s"] == pytest.approx(0.1, abs=1e-9)
        assert row["first_s"] - row["planned_s"] == pytest.approx(0.025, abs=1e-9)
        assert (row["itl_count"], row["output_tokens"], row["prompt_tokens"]) == (3, 4, 32)
        assert (row["stamp_source"], row["token_source"]) == ("virtual", "continuous_usage")
    assert records.delivered_output_tokens == 200
    assert records.window.drained
    assert records.load_state == "stable"
    assert records.client.stamp_source == "virtual"
    assert records.client.send_lag_max_seconds == 0


def test_above_its_rate_the_queue_grows_until_the_drain_deadline(run: Run) -> None:
    records = run(arrival="constant", request_rate=20, window_seconds=10, drain=5)
    assert records.window.ended == 15
    assert not records.window.drained
    assert records.load_state == "saturated"
    assert records.counts.attempted == 200
    assert records.counts.completed == 150
    assert records.counts.reasons == {"DrainDeadline": 50}
    reasons = {row["reason"] for row in records.requests.to_pylist() if not row["in_window"]}
    assert reasons == {"TailClosed"}
    assert records.delivered_requests == 99, "the last of 100 ends with the window, not in it"


def test_a_closed_loop_by_count_counts_exactly_so_many(run: Run) -> None:
    records = run(arrival="closed", concurrency=4, window_requests=30)
    assert records.counts.attempted == records.counts.completed == 30
    assert records.window.opened == pytest.approx(0.4, abs=1e-6), "when the first four have ended"
    assert records.window.seconds == pytest.approx(3.0, abs=1e-6)
    assert records.load_state == "not_judged"


def test_a_closed_loop_by_time_keeps_its_streams_full(run: Run) -> None:
    records = run(arrival="closed", concurrency=3, window_seconds=5)
    assert records.in_flight_opened == 2, "the third follows a nanosecond after the end that opens the window"
    assert records.delivered_requests == pytest.approx(50, abs=1)
    assert records.client.connections_max == 3


def test_a_closed_loop_whose_first_requests_do_not_end_has_no_window(run: Run) -> None:
    records = run(arrival="closed", concurrency=40, window_seconds=5, lead_in=1, drain=2)
    assert not records.window_opened
    assert records.window.ended == 3
    assert records.counts.attempted == 0


def test_the_window_of_a_burst_ends_with_its_last_request(run: Run) -> None:
    records = run(arrival="burst", window_requests=30)
    assert records.window.seconds == pytest.approx(3.0, abs=1e-9)
    assert records.counts.completed == records.counts.attempted == 30


def test_what_the_model_length_cuts_off_is_a_failure(run: Run) -> None:
    records = run(arrival="constant", request_rate=1, window_seconds=3, prompt_tokens=32766, output_tokens=4)
    assert records.counts.reasons == {"ShortOutput": 3}
    refused = run(arrival="constant", request_rate=1, window_seconds=3, prompt_tokens=32768, output_tokens=4)
    assert refused.counts.reasons == {"Http400": 3}


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rate=st.floats(1, 40), seed=st.integers(0, 99), lead_in=st.floats(0, 2))
def test_the_same_seed_gives_the_same_records_and_no_token_is_lost(
    run: Run, rate: float, seed: int, lead_in: float
) -> None:
    shape = {"arrival": "poisson", "request_rate": rate, "window_seconds": 3}
    first, second = (run("teaching", lead_in, 5, seed, **shape) for _ in range(2))
    assert first.requests.equals(second.requests)
    assert (first.window, first.itl, first.client) == (second.window, second.itl, second.client)
    for row in first.requests.to_pylist():
        if row["outcome"] == "completed":
            assert row["output_tokens"] == 4
            assert row["planned_s"] == row["sent_s"] < row["first_s"] < row["last_s"] == row["end_s"]
            assert row["itl_sum_s"] == pytest.approx(row["last_s"] - row["first_s"], abs=1e-9)


def test_a_sample_says_what_the_metrics_say() -> None:
    engine = started("teaching", "--max-num-seqs", "4")
    for _ in range(9):
        engine.submit(700, 30)
    for _ in range(5):
        pass_time(engine, 0.1)
        told = sample(engine)
        assert told.running
        assert told.same(parse(engine.metrics(), told.stamp, whole=False))
