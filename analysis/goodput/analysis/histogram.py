"""Quantiles of a log-bucket histogram (`schema.LogHistogram`): buckets of 1 % width, so within 0.5 %."""

from __future__ import annotations

from goodput.analysis.schema.cell import LogHistogram


def count(histogram: LogHistogram) -> int:
    """How many values it holds."""
    return histogram.zero + sum(histogram.counts.values())


def quantile(histogram: LogHistogram, p: float) -> float | None:
    """The p-quantile in seconds: the geometric middle of the bucket that holds it; None when empty."""
    total = count(histogram)
    if not total:
        return None
    rank = max(1, round(p * total))
    seen = histogram.zero
    if rank <= seen:
        return 0.0
    for bucket in sorted(histogram.counts):
        seen += histogram.counts[bucket]
        if rank <= seen:
            return float(histogram.base ** (bucket + 0.5))
    raise AssertionError("the rank lies within the total")
