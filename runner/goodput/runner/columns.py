"""Server columns of a cell from its snapshots: counters over the whole cell, gauges over the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

import pyarrow as pa

from goodput.analysis.schema.server import ServerColumns, ServerHistogram
from goodput.runner import names
from goodput.runner.snapshot import Snapshot

GAP_INTERVALS = 3
HIGH_SHARE = 0.95
_SAMPLED = ("running", "waiting", "kv_usage", "preemptions", "prompt_tokens", "generation_tokens")

SERVER_SCHEMA: pa.Schema = pa.schema(
    [pa.field("t_s", pa.float64(), nullable=False), *(pa.field(name, pa.float64()) for name in _SAMPLED)]
)


def server_columns(
    opening: Snapshot,
    closing: Snapshot | None,
    samples: Sequence[Snapshot],
    window: tuple[float, float] | None,
    *,
    interval_seconds: float,
) -> ServerColumns:
    """The columns. Where the server exposes none of the metrics all are null, and ``reason`` says why.

    Args:
        opening: idle snapshot before the cell.
        closing: idle snapshot after it; None where it could not be read: the deltas are null.
        samples: taken while the cell ran; those in which nothing is known count as not taken.
        window: its beginning and end, CLOCK_MONOTONIC seconds; None where it never opened: the gauges are null.
        interval_seconds: planned distance of samples; a hole of more than three of them in the window makes
            the gauges null and ``complete`` false.
    """
    if not opening.known:
        return ServerColumns(complete=False, reason=opening.problem)
    inside = [sample for sample in samples if sample.known and window and window[0] <= sample.stamp <= window[1]]
    gap = None if window is None else _longest_gap(inside, window)
    reason = _incomplete(gap, GAP_INTERVALS * interval_seconds)
    return ServerColumns(
        complete=reason is None,
        reason=reason,
        samples=len(inside),
        gap_seconds=gap,
        **{name: _delta(opening, closing, name) for name in names.COUNTERS},
        requests_finished=_finished_delta(opening, closing),
        **(_gauges(inside) if reason is None else {}),
        histograms=_histograms(opening, closing),
        names=opening.names,
        kv_blocks=opening.kv_blocks,
        block_size=opening.block_size,
    )


def samples_table(samples: Sequence[Snapshot], started: float) -> pa.Table:
    """``server.parquet``: the samples over the whole cell; ``started`` is the cell's start, monotonic seconds."""
    columns: dict[str, list[float | None]] = {name: [getattr(s, name) for s in samples] for name in _SAMPLED}
    return pa.table({"t_s": [s.stamp - started for s in samples], **columns}, schema=SERVER_SCHEMA)


def high(values: Sequence[float], share: float = HIGH_SHARE) -> float:
    """The smallest value that is not below ``share`` of them (nearest rank): one that was seen, not interpolated."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def _finished_delta(opening: Snapshot, closing: Snapshot | None) -> dict[str, float] | None:
    """Requests that finished between the snapshots, by reason; None where the server does not say."""
    if closing is None or closing.finished is None or opening.finished is None:
        return None
    return {reason: count - opening.finished.get(reason, 0.0) for reason, count in sorted(closing.finished.items())}


def _delta(opening: Snapshot, closing: Snapshot | None, name: str) -> float | None:
    before = getattr(opening, name)
    after = None if closing is None else getattr(closing, name)
    return None if before is None or after is None else after - before


def _histograms(opening: Snapshot, closing: Snapshot | None) -> dict[str, ServerHistogram]:
    """Observations between the snapshots, of the histograms that both have with the same edges."""
    found: dict[str, ServerHistogram] = {}
    for name, after in ({} if closing is None else closing.histograms).items():
        before = opening.histograms.get(name)
        if before is None or before.edges != after.edges:
            continue
        counts = tuple(late - early for early, late in zip(before.counts, after.counts, strict=True))
        total = None if before.total is None or after.total is None else after.total - before.total
        if min(counts) >= 0:
            found[name] = ServerHistogram(edges=after.edges, counts=counts, total=total)
    return found


def _gauges(inside: Sequence[Snapshot]) -> dict[str, Any]:
    gauges: dict[str, Any] = {"gauge_samples": {}}
    for name in names.GAUGES:
        values = [value for sample in inside if (value := getattr(sample, name)) is not None]
        if values:
            gauges |= {f"{name}_mean": fmean(values), f"{name}_p95": high(values), f"{name}_max": max(values)}
            gauges["gauge_samples"][name] = len(values)
    return gauges


def _longest_gap(inside: Sequence[Snapshot], window: tuple[float, float]) -> float:
    """Longest time within the window without a sample, seconds."""
    stamps = [window[0], *(sample.stamp for sample in inside), window[1]]
    return max(later - earlier for earlier, later in pairwise(stamps))


def _incomplete(gap: float | None, longest_seconds: float) -> str | None:
    if gap is None:
        return "MetricsGap: there is no window"
    return None if gap <= longest_seconds else f"MetricsGap: no samples for {gap:.1f} s of the window"
