"""One measured cell in numbers: what its records and its ``cell.json`` say under an SLO. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from goodput.analysis import histogram, stats
from goodput.analysis.metrics import Floats, Judgement, Requests, judge, rate, ratio, request_metrics
from goodput.analysis.schema.cell import CellDocument, LogHistogram
from goodput.analysis.schema.planned import Slo
from goodput.analysis.score import BlockValue

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
LATENCIES = ("ttft", "tpot", "itl", "e2e", "scheduled_ttft", "scheduled_e2e", "ttft_answer")


@dataclass(frozen=True)
class Percentile:
    """A percentile in seconds with its order-statistic interval (this run only).

    ``small``: the sample cannot support it (`stats.minimum_samples`).
    """

    value: float
    low: float | None
    high: float | None
    small: bool


@dataclass(frozen=True)
class Latency:
    """Distribution of one latency over the window's completed requests (``itl``: over the gaps in them)."""

    mean: float
    percentiles: Mapping[str, Percentile]  # p50, p95, p99


@dataclass(frozen=True)
class Cell:
    """One valid cell. ``latencies`` holds only those that have at least one value."""

    document: CellDocument
    judgement: Judgement
    latencies: Mapping[str, Latency]

    @property
    def seconds(self) -> float:
        """Length of the window."""
        assert self.document.window is not None, "a valid cell has a window"
        return self.document.window.seconds

    @property
    def goodput(self) -> float | None:
        """Good requests per second of the window."""
        return rate(self.judgement.good, self.seconds)

    @property
    def attainment(self) -> float | None:
        """Good / attempted; None where nothing arrived."""
        return ratio(self.judgement.good, self.judgement.attempted)

    @property
    def failures(self) -> Mapping[str, int]:
        """Requests of the window that did not complete, by reason."""
        return self.document.counts.reasons if self.document.counts is not None else {}

    def block_value(self) -> BlockValue:
        """What deciding needs of this cell."""
        return BlockValue(
            good=self.judgement.good,
            attempted=self.judgement.attempted,
            window_seconds=self.seconds,
            saturated=self.document.load_state == "saturated",
            output_tokens=self.document.delivered_output_tokens,
            gpu=self.document.provenance.gpu_uuid,
        )


def measure(document: CellDocument, table: pa.Table, slo: Slo) -> Cell:
    """Judge the records of a valid cell.

    Open loop is judged on scheduled latencies, closed loop (where planned = sent) on the plain ones.
    """
    requests = request_metrics(table)
    return Cell(
        document=document,
        judgement=judge(requests, slo, open_loop=document.load.arrival != "closed"),
        latencies=_latencies(requests, document.itl, table),
    )


def _latencies(requests: Requests, itl: LogHistogram | None, table: pa.Table) -> dict[str, Latency]:
    mask = requests.completed
    columns = {
        "ttft": requests.ttft_s,
        "tpot": requests.tpot_s,
        "e2e": requests.e2e_s,
        "scheduled_ttft": requests.scheduled_ttft_s,
        "scheduled_e2e": requests.scheduled_e2e_s,
        "ttft_answer": requests.ttft_answer_s,
    }
    found = {name: _latency(values[mask]) for name, values in columns.items()}
    found["itl"] = _itl(itl, table, mask) if itl is not None else None
    return {name: found[name] for name in LATENCIES if found[name] is not None}  # type: ignore[misc]


def _latency(values: Floats) -> Latency | None:
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        return None
    values_at = np.quantile(ordered, list(QUANTILES.values()))
    percentiles = {}
    for (name, p), value in zip(QUANTILES.items(), values_at, strict=True):
        low, high = stats.percentile_interval(ordered, p)
        percentiles[name] = Percentile(float(value), low, high, small=len(ordered) < stats.minimum_samples(p))
    return Latency(float(ordered.mean()), percentiles)


def _itl(itl: LogHistogram, table: pa.Table, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Latency | None:
    """Gaps between tokens: percentiles from the histogram, without an interval, since gaps of a request depend.

    For the same reason the sample's size is that of the requests which have gaps, not of the gaps.
    """
    gaps = np.nan_to_num(table["itl_count"].cast(pa.float64()).to_numpy()[mask])
    total = float(gaps.sum())
    values = {name: histogram.quantile(itl, p) for name, p in QUANTILES.items()}
    if not total or None in values.values():
        return None
    requests = int((gaps > 0).sum())
    percentiles = {
        name: Percentile(value, None, None, small=requests < stats.minimum_samples(QUANTILES[name]))
        for name, value in values.items()
        if value is not None
    }
    return Latency(float(np.nansum(table["itl_sum_s"].to_numpy()[mask])) / total, percentiles)
