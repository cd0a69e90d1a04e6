"""Server columns of a cell from its snapshots: counters over the whole cell, gauges over the window."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

import pyarrow as pa

from goodput.analysis.schema import ServerColumns
from goodput.runner import names
from goodput.runner.snapshot import Snapshot

GAP_INTERVALS = 3
_GAUGES = ("kv_usage", "running", "waiting")
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
) -> ServerColumns | None:
    """The columns, or None for a server that exposes none of the metrics.

    Args:
        opening: idle snapshot before the cell.
        closing: idle snapshot after it; None where it could not be read: the deltas are null.
        samples: taken while the cell ran.
        window: its beginning and end, CLOCK_MONOTONIC seconds; None where it never opened: the gauges are null.
        interval_seconds: planned distance of samples; a hole of more than three of them in the window makes
            the gauges null and ``complete`` false.
    """
    if not opening.known:
        return None
    inside = [sample for sample in samples if window and window[0] <= sample.stamp <= window[1]]
    complete = window is not None and not _has_gap(inside, window, GAP_INTERVALS * interval_seconds)
    return ServerColumns(
        complete=complete,
        samples=len(inside),
        **{name: _delta(opening, closing, name) for name in names.COUNTERS},
        requests_finished=finished_delta(opening, closing),
        **(_gauges(inside) if complete else {}),
        kv_blocks=opening.kv_blocks,
        block_size=opening.block_size,
    )


def finished_delta(opening: Snapshot, closing: Snapshot | None) -> dict[str, float] | None:
    """Requests that finished between the snapshots, by reason; None where the server does not say."""
    if closing is None or closing.finished is None or opening.finished is None:
        return None
    return {reason: count - opening.finished.get(reason, 0.0) for reason, count in sorted(closing.finished.items())}


def samples_table(samples: Sequence[Snapshot], started: float) -> pa.Table:
    """``server.parquet``: the samples over the whole cell; ``started`` is the cell's start, monotonic seconds."""
    columns: dict[str, list[float | None]] = {name: [getattr(s, name) for s in samples] for name in _SAMPLED}
    return pa.table({"t_s": [s.stamp - started for s in samples], **columns}, schema=SERVER_SCHEMA)


def _delta(opening: Snapshot, closing: Snapshot | None, name: str) -> float | None:
    before = getattr(opening, name)
    after = None if closing is None else getattr(closing, name)
    return None if before is None or after is None else after - before


def _gauges(inside: Sequence[Snapshot]) -> dict[str, float]:
    gauges: dict[str, float] = {}
    for name in _GAUGES:
        values = [value for sample in inside if (value := getattr(sample, name)) is not None]
        if values:
            gauges |= {f"{name}_mean": fmean(values), f"{name}_max": max(values)}
    return gauges


def _has_gap(inside: Sequence[Snapshot], window: tuple[float, float], longest_seconds: float) -> bool:
    stamps = [window[0], *(sample.stamp for sample in inside), window[1]]
    holes = [later - earlier for earlier, later in pairwise(stamps)]
    return not inside or max(holes) > longest_seconds
