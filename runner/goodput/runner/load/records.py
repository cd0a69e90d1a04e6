"""What is kept of a cell: one row per request, the pooled gaps, counts, deliveries (pure)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from goodput.analysis.schema import SCHEMA_VERSION, Counts, LoadState, LogHistogram, RequestOutcome

HISTOGRAM_BASE = 1.01
_LOG_BASE = math.log(HISTOGRAM_BASE)

REQUESTS_SCHEMA: pa.Schema = pa.schema(
    [
        pa.field("request", pa.int64(), nullable=False),
        pa.field("planned_s", pa.float64(), nullable=False),
        pa.field("sent_s", pa.float64()),
        pa.field("first_s", pa.float64()),
        pa.field("last_s", pa.float64()),
        pa.field("end_s", pa.float64()),
        pa.field("prompt_tokens", pa.int64(), nullable=False),
        pa.field("output_tokens", pa.int64()),
        pa.field("token_source", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("in_window", pa.bool_(), nullable=False),
        pa.field("itl_max_s", pa.float64()),
        pa.field("itl_sum_s", pa.float64()),
        pa.field("itl_count", pa.int64()),
        pa.field("stamp_source", pa.string(), nullable=False),
        pa.field("coalesced_reads", pa.int64(), nullable=False),
    ],
    metadata={"goodput.schema": "requests", "goodput.schema_version": str(SCHEMA_VERSION)},
)


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One row of ``requests.parquet``. Seconds from the cell's start; None is null."""

    request: int
    planned_s: float
    sent_s: float | None
    first_s: float | None
    last_s: float | None
    end_s: float | None
    prompt_tokens: int  # as the server counts them; as asked where it does not say
    output_tokens: int | None
    token_source: str
    outcome: RequestOutcome
    reason: str | None
    in_window: bool
    itl_max_s: float | None
    itl_sum_s: float | None
    itl_count: int | None
    stamp_source: str
    coalesced_reads: int


def table(records: Iterable[RequestRecord]) -> pa.Table:
    """The records in the order of their request numbers, with the schema's version in the metadata."""
    rows = sorted(records, key=lambda record: record.request)
    columns = [pa.array([getattr(row, f.name) for row in rows], type=f.type) for f in REQUESTS_SCHEMA]
    return pa.Table.from_arrays(columns, schema=REQUESTS_SCHEMA)


def counts(records: Iterable[RequestRecord]) -> Counts:
    """Outcomes of the window's planned arrivals."""
    window = [record for record in records if record.in_window]
    outcomes = Counter(record.outcome for record in window)
    reasons = Counter(record.reason for record in window if record.reason is not None)
    return Counts(
        attempted=len(window),
        completed=outcomes["completed"],
        failed=outcomes["failed"],
        incomplete=outcomes["incomplete"],
        not_sent=outcomes["not_sent"],
        reasons=dict(sorted(reasons.items())),
    )


def in_flight(records: Iterable[RequestRecord], at_seconds: float) -> int:
    """Requests that were sent and had not ended at that time."""
    return sum(
        1
        for record in records
        if record.sent_s is not None
        and record.sent_s <= at_seconds
        and (record.end_s is None or record.end_s > at_seconds)
    )


def load_state(opened: int, closed: int, *, open_loop: bool) -> LoadState:
    """Saturated when more requests were in flight at the window's end than chance explains: N1 − N0 > 3·√(N0 + N1)."""
    if not open_loop:
        return "not_judged"
    return "saturated" if closed - opened > 3 * math.sqrt(opened + closed) else "stable"


class GapHistogram:
    """Pools gaps into buckets of 1 % width: bucket k holds [1.01^k, 1.01^(k+1)) seconds."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._zero = 0

    def add(self, gap_ns: float, count: int) -> None:
        """A gap that occurred ``count`` times."""
        if gap_ns <= 0:
            self._zero += count
        else:
            self._counts[bucket(gap_ns / 1e9)] += count

    def document(self) -> LogHistogram:
        """The stored form."""
        return LogHistogram(base=HISTOGRAM_BASE, zero=self._zero, counts=dict(sorted(self._counts.items())))


def bucket(seconds: float) -> int:
    """Number of the bucket that holds a positive time."""
    return math.floor(math.log(seconds) / _LOG_BASE)
