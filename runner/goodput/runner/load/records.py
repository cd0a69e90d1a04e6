"""What is kept of a cell: one row per request, the pooled gaps, counts, deliveries (pure)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from goodput.analysis.schema.base import SCHEMA_VERSION, LoadState, RequestOutcome
from goodput.analysis.schema.cell import Counts, LogHistogram
from goodput.analysis.schema.planned import Load

HISTOGRAM_BASE = 1.01
_LOG_BASE = math.log(HISTOGRAM_BASE)
_BATCH_ROWS = 8192
_BATCH_GAPS = 1 << 16

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
        pa.field("answer_s", pa.float64()),
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
    answer_s: float | None  # the first token behind the reasoning; None where there was none


class Rows:
    """Keeps the rows of a cell in columns: a row takes some 400 bytes while they are sorted, as an object far more."""

    def __init__(self) -> None:
        self._new: list[RequestRecord] = []
        self._batches: list[pa.RecordBatch] = []

    def add(self, record: RequestRecord) -> None:
        """Keep one more row."""
        self._new.append(record)
        if len(self._new) >= _BATCH_ROWS:
            self._pack()

    def _pack(self) -> None:
        columns = [pa.array([getattr(row, f.name) for row in self._new], type=f.type) for f in REQUESTS_SCHEMA]
        self._batches.append(pa.RecordBatch.from_arrays(columns, schema=REQUESTS_SCHEMA))
        self._new = []

    def table(self) -> pa.Table:
        """The rows in the order of their request numbers, with the schema's version in the metadata.

        Once, at the end: column by column, so that the rows are never held twice.
        """
        if self._new:
            self._pack()
        unsorted, self._batches = pa.Table.from_batches(self._batches, schema=REQUESTS_SCHEMA), []
        order = pc.sort_indices(unsorted.column("request"))
        columns = []
        while unsorted.num_columns:
            columns.append(unsorted.column(0).take(order))
            unsorted = unsorted.remove_column(0)
        return pa.table(columns, schema=REQUESTS_SCHEMA)


def counts(requests: pa.Table) -> Counts:
    """Outcomes of the window's planned arrivals."""
    window = requests.select(["outcome", "reason"]).filter(requests.column("in_window"))
    outcomes = _tally(window, "outcome")
    return Counts(
        attempted=len(window),
        completed=outcomes["completed"],
        failed=outcomes["failed"],
        incomplete=outcomes["incomplete"],
        not_sent=outcomes["not_sent"],
        reasons=dict(sorted(_tally(window, "reason").items())),
    )


def _tally(requests: pa.Table, column: str) -> Counter[str]:
    told = requests.column(column).drop_null().value_counts()
    return Counter({entry["values"].as_py(): entry["counts"].as_py() for entry in told})


def in_flight(requests: pa.Table, at_seconds: float) -> int:
    """Requests that were sent and had not ended at that time."""
    sent, ended = seconds(requests, "sent_s"), seconds(requests, "end_s")
    return int(np.count_nonzero((sent <= at_seconds) & ~(ended <= at_seconds)))


def seconds(requests: pa.Table, column: str) -> NDArray[np.float64]:
    """A column of times; nan where there is none."""
    times: NDArray[np.float64] = requests.column(column).to_numpy()
    return times


def judged(load: Load) -> bool:
    """Whether a load can be said to saturate: its rate must be the same all the time.

    Where stages or a trace change the rate, more requests are in flight when more arrive; closed loops and bursts
    have no rate.
    """
    return load.request_rate is not None


def load_state(opened: int, closed: int, *, judged: bool) -> LoadState:
    """Saturated when more requests were in flight at the window's end than chance explains: N1 − N0 > 3·√(N0 + N1)."""
    if not judged:
        return "not_judged"
    return "saturated" if closed - opened > 3 * math.sqrt(opened + closed) else "stable"


class GapHistogram:
    """Pools gaps into buckets of 1 % width: bucket k holds [1.01^k, 1.01^(k+1)) seconds."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._zero = 0
        self._new: list[tuple[NDArray[np.float64], NDArray[np.int64]]] = []
        self._waiting = 0

    def add(self, gaps_ns: NDArray[np.float64], tokens: NDArray[np.int64]) -> None:
        """Gaps, each of which occurred as many times as the later read had tokens."""
        self._new.append((gaps_ns, tokens))
        self._waiting += len(gaps_ns)
        if self._waiting >= _BATCH_GAPS:
            self._pool()

    def _pool(self) -> None:
        gaps = np.concatenate([gaps for gaps, _ in self._new])
        tokens = np.concatenate([tokens for _, tokens in self._new])
        self._new, self._waiting = [], 0
        positive = gaps > 0
        self._zero += int(tokens[~positive].sum())
        if positive.any():
            found, place = np.unique(buckets(gaps[positive] / 1e9), return_inverse=True)
            sums = np.bincount(place, weights=tokens[positive])
            self._counts.update({int(k): int(count) for k, count in zip(found, sums, strict=True)})

    def document(self) -> LogHistogram:
        """The stored form."""
        if self._new:
            self._pool()
        return LogHistogram(base=HISTOGRAM_BASE, zero=self._zero, counts=dict(sorted(self._counts.items())))


def buckets(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Numbers of the buckets that hold these positive times."""
    return np.floor(np.log(seconds) / _LOG_BASE).astype(np.int64)
