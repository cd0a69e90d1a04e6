"""Columns of ``tables/cells`` that its requests make: counts, rates, latencies of one run. Pure.

Intervals are those of one run (``*_this_run_*``): Wilson for attainment, order statistics for percentiles.
They say nothing of what another server start would give.
"""

from __future__ import annotations

from goodput.analysis import stats
from goodput.analysis.cells import Cell
from goodput.analysis.columns import latency_columns
from goodput.analysis.goodput_table import load_state
from goodput.analysis.metrics import most_frequent, rate
from goodput.analysis.tables import FLOAT, INT, TEXT, Columns, Row

COUNTS: Columns = {
    **dict.fromkeys(("attempted", "good", "slow", "unjudged", "failed", "incomplete", "not_sent"), INT),
    "failure_reason": TEXT,
    "load_state": TEXT,
    **dict.fromkeys(("in_flight_opened", "in_flight_closed"), INT),
}
RATES: Columns = dict.fromkeys(
    (
        "goodput_per_second",
        "attainment_ratio",
        "attainment_this_run_low_ratio",
        "attainment_this_run_high_ratio",
        "requests_per_second",
        "output_tokens_per_second",
        "total_tokens_per_second",
        "makespan_seconds",
    ),
    FLOAT,
)
LATENCY = latency_columns("this_run_")
COLUMNS: Columns = {**COUNTS, **RATES, **LATENCY}


def request_columns(cell: Cell) -> Row:
    """The values of `COLUMNS`."""
    return _counts(cell) | _rates(cell) | _latencies(cell)


def _counts(cell: Cell) -> Row:
    judged, document = cell.judgement, cell.document
    return {
        "attempted": judged.attempted,
        "good": judged.good,
        "slow": judged.slow,
        "unjudged": judged.unjudged,
        "failed": judged.failed,
        "incomplete": judged.incomplete,
        "not_sent": judged.not_sent,
        "failure_reason": most_frequent([cell.failures]),
        "load_state": load_state([cell]),
        "in_flight_opened": document.in_flight_opened,
        "in_flight_closed": document.in_flight_closed,
    }


def _rates(cell: Cell) -> Row:
    low, high = stats.wilson(cell.judgement.good, cell.judgement.attempted) or (None, None)
    document = cell.document
    return {
        "goodput_per_second": cell.goodput,
        "attainment_ratio": cell.attainment,
        "attainment_this_run_low_ratio": low,
        "attainment_this_run_high_ratio": high,
        "requests_per_second": rate(document.delivered_requests, cell.seconds),
        "output_tokens_per_second": rate(document.delivered_output_tokens, cell.seconds),
        "total_tokens_per_second": rate(document.delivered_total_tokens, cell.seconds),
        "makespan_seconds": document.makespan_seconds,
    }


def _latencies(cell: Cell) -> Row:
    row: Row = dict.fromkeys(LATENCY)
    for name, latency in cell.latencies.items():
        row[f"{name}_mean_seconds"] = latency.mean
        for p, percentile in latency.percentiles.items():
            row |= {
                f"{name}_{p}_seconds": percentile.value,
                f"{name}_{p}_this_run_low_seconds": percentile.low,
                f"{name}_{p}_this_run_high_seconds": percentile.high,
                f"{name}_{p}_small_sample": percentile.small,
            }
    return row
