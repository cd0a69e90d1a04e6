from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.analysis.schema.planned import Load
from goodput.runner.load import records, spool
from goodput.runner.load.errors import SpoolError
from goodput.runner.load.records import (
    REQUESTS_SCHEMA,
    GapHistogram,
    RequestRecord,
    Rows,
    buckets,
    counts,
    in_flight,
    judged,
    load_state,
)


def table(records: Iterable[RequestRecord]) -> pa.Table:
    rows = Rows()
    for record in records:
        rows.add(record)
    return rows.table()


DONE = RequestRecord(
    request=0,
    planned_s=1.0,
    sent_s=1.0,
    first_s=1.5,
    last_s=2.0,
    end_s=2.0,
    prompt_tokens=8,
    output_tokens=4,
    token_source="continuous_usage",
    outcome="completed",
    reason=None,
    in_window=True,
    itl_max_s=0.2,
    itl_sum_s=0.5,
    itl_count=3,
    stamp_source="kernel",
    coalesced_reads=0,
    answer_s=None,
)
NOT_SENT = replace(
    DONE,
    request=1,
    sent_s=None,
    first_s=None,
    last_s=None,
    end_s=None,
    output_tokens=None,
    outcome="not_sent",
    reason="Stopped",
)


def test_the_table_has_the_columns_and_nulls_where_nothing_is_known() -> None:
    rows = table([NOT_SENT, DONE])
    assert rows.schema.equals(REQUESTS_SCHEMA, check_metadata=True)
    assert rows.column_names == [
        "request", "planned_s", "sent_s", "first_s", "last_s", "end_s", "prompt_tokens", "output_tokens",
        "token_source", "outcome", "reason", "in_window", "itl_max_s", "itl_sum_s", "itl_count", "stamp_source",
        "coalesced_reads", "answer_s",
    ]  # fmt: skip
    assert rows.column("request").to_pylist() == [0, 1]
    assert rows.column("sent_s").to_pylist() == [1.0, None]
    assert table([]).schema.equals(REQUESTS_SCHEMA)


def test_rows_may_come_in_any_order_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_BATCH_ROWS", 3)
    rows = table(replace(DONE, request=number) for number in (6, 0, 3, 5, 1, 2, 4))
    assert rows.column("request").to_pylist() == list(range(7))


def test_counts_are_over_the_planned_arrivals_of_the_window() -> None:
    failed = replace(DONE, outcome="failed", reason="Reset")
    told = counts(table([DONE, NOT_SENT, failed, failed, replace(DONE, in_window=False)]))
    assert (told.attempted, told.completed, told.failed, told.incomplete, told.not_sent) == (4, 1, 2, 0, 1)
    assert told.reasons == {"Reset": 2, "Stopped": 1}


def test_in_flight_is_sent_and_not_ended() -> None:
    records = table([DONE, NOT_SENT, replace(DONE, sent_s=1.2, end_s=None)])
    assert [in_flight(records, at) for at in (0.9, 1.0, 1.3, 2.0)] == [0, 1, 2, 1]


@pytest.mark.parametrize(
    ("opened", "closed", "expected"),
    [(0, 0, "stable"), (0, 9, "stable"), (0, 10, "saturated"), (50, 70, "stable"), (50, 90, "saturated")],
)  # fmt: skip
def test_a_load_is_saturated_when_more_wait_than_chance_explains(opened: int, closed: int, expected: str) -> None:
    assert load_state(opened, closed, judged=True) == expected
    assert load_state(opened, closed, judged=False) == "not_judged"


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ({"arrival": "poisson", "request_rate": 4.0}, True),
        ({"arrival": "gamma", "burstiness": 0.5, "request_rate": 4.0}, True),
        ({"arrival": "poisson", "stages": [{"duration_seconds": 60, "rate": 1, "end_rate": 100}]}, False),
        ({"arrival": "replay", "dataset": "trace", "speed": 10.0}, False),
        ({"arrival": "burst", "window_requests": 50}, False),
        ({"arrival": "closed", "concurrency": 4}, False),
    ],
)
def test_only_a_rate_that_stays_can_saturate_a_server(load: dict[str, Any], expected: bool) -> None:
    """A ramp from 1/s to 100/s has a hundred times as many requests in flight at its end, however fast the server."""
    assert judged(Load.model_validate(load)) is expected


@given(st.floats(1e-6, 1e4))
def test_a_bucket_holds_its_values(seconds: float) -> None:
    (bucket,) = buckets(np.array([seconds])).tolist()
    assert 1.01**bucket <= seconds * (1 + 1e-9)
    assert seconds < 1.01 ** (bucket + 1) * (1 + 1e-9)


@pytest.mark.parametrize("pooled_at_once", [1, 2, 100])
def test_the_histogram_counts_every_gap(pooled_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_BATCH_GAPS", pooled_at_once)
    gaps = GapHistogram()
    gaps.add(np.array([0.0, 1e9]), np.array([2, 3]))
    gaps.add(np.array([50e6]), np.array([1]))
    document = gaps.document()
    assert document.zero == 2
    assert document.counts == {math.floor(math.log(0.05) / math.log(1.01)): 1, 0: 3}


def test_the_spool_gives_back_its_records_and_forgives_a_torn_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "_READ_BYTES", 11)  # records lie across blocks
    rows = [(n, spool.READ_USER, n * 10**15, bytes(n)) for n in range(40)]
    data = b"".join(spool.header(r, len(b), kind, stamp) + b for r, kind, stamp, b in rows)
    path = tmp_path / "spool"
    path.write_bytes(data)
    assert list(spool.read_spool(path, 7)) == rows
    path.write_bytes(data[:-1])
    assert list(spool.read_spool(path, 7)) == rows[:-1]
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(SpoolError, match="cannot be right"):
        list(spool.read_spool(path, 7))


def test_a_kernel_stamp_is_placed_on_the_monotonic_clock(tmp_path: Path) -> None:
    timespecs = struct.pack("qqqqqq", 1_700_000_000, 5, 0, 0, 0, 0)  # as recvmsg gives them
    (tmp_path / "spool").write_bytes(spool.HEADER.pack(9, 1, spool.READ_KERNEL, timespecs) + b"x")
    offset = 1_600_000_000 * 10**9
    assert list(spool.read_spool(tmp_path / "spool", offset)) == [(9, spool.READ_KERNEL, 100_000_000 * 10**9 + 5, b"x")]
