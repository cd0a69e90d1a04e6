"""``tables/goodput``: one row per config and load point, over all blocks.

Goodput and throughput are means of block values, attainment is Σ good / Σ attempted, percentiles are means of
block percentiles; each with its 95 % t interval over blocks. ``*_small_sample``: at least one block's sample
cannot support the percentile. The latencies of a saturated load point grow with the length of the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from goodput.analysis import ids, stats
from goodput.analysis.cells import LATENCIES, QUANTILES, Cell
from goodput.analysis.columns import COUNTS, FIXED, IDS, LATENCY, LOAD, RATES, SERVER, START, VERDICT
from goodput.analysis.metrics import most_frequent, rate, ratio
from goodput.analysis.planned import PlannedCell
from goodput.analysis.result import AnalysisResult
from goodput.analysis.schema.planned import Config, Load, Stage
from goodput.analysis.tables import Row, build, flag_cells


def goodput_table(result: AnalysisResult) -> pa.Table:
    """The table, by config as the spec lists them, and load ascending."""
    flags, values = flag_cells(result.spec.configs, list(FIXED))
    columns = {**IDS, **flags, **LOAD, **COUNTS, **RATES, **LATENCY, **SERVER, **START, **VERDICT}
    rows = [
        _row(result, config, load, values[config.id])
        for config in result.spec.configs
        for load in result.loads.values()
    ]
    return build(rows, columns, result.spec)


def _row(result: AnalysisResult, config: Config, load: Load, flags: Row) -> Row:
    cells = result.measured.get((config.id, load.id), ())
    return (
        {"config": config.id, "load": load.id, "engine": config.engine}
        | flags
        | load_cells(load)
        | _counts(result, config, load, cells)
        | _rates(config, cells)
        | _latencies(cells)
        | _server(cells)
        | start_cells(cells)
        | {
            "gpu_seconds": gpu_seconds(config, cells),
            "chosen": load.id in result.chosen(config.id),
            "verdict": result.standing(config.id),
        }
    )


def load_cells(load: Load) -> Row:
    """The load point's own columns."""
    return {
        "dataset": load.dataset,
        "prompt_tokens": load.prompt_tokens,
        "output_tokens": load.output_tokens,
        "length_distribution": load.length_distribution,
        "length_variation_ratio": load.length_variation,
        "max_tokens": load.max_tokens,
        "prefix_groups": load.prefix_groups,
        "prefix_tokens": load.prefix_tokens,
        "arrival": load.arrival,
        "burstiness": load.burstiness,
        "request_rate_per_second": load.request_rate,
        "stages": " ".join(map(_stage, load.stages)) if load.stages else None,
        "speed_ratio": load.speed,
        "concurrency": load.concurrency,
        "window_seconds": load.window_seconds,
        "window_requests": load.window_requests,
    }


def _stage(stage: Stage) -> str:
    end = "" if stage.end_rate is None else f"-{ids.text(stage.end_rate)}"
    return f"{ids.text(stage.duration_seconds)}s@{ids.text(stage.rate)}{end}/s"


def _counts(result: AnalysisResult, config: Config, load: Load, cells: Sequence[Cell]) -> Row:
    names = ("attempted", "good", "slow", "failed", "incomplete", "not_sent")
    sums = {name: sum(getattr(cell.judgement, name) for cell in cells) if cells else None for name in names}
    void = [each for each in result.planned_at(config.id, load.id) if each.state == "void"]
    return {
        "blocks": len(cells),
        **sums,
        "void_cells": len(void),
        "failure_reason": _failure(result.planned_at(config.id, load.id), cells),
        "load_state": load_state(cells),
    }


def _failure(planned: Sequence[PlannedCell], cells: Sequence[Cell]) -> str | None:
    """Why most of the requests that did not complete did not; where no cell is valid: why most of them are not."""
    if cells:
        return most_frequent(cell.failures for cell in cells)
    return most_frequent({cell.reason: 1} for cell in planned if cell.reason is not None)


def load_state(cells: Sequence[Cell]) -> str | None:
    """Saturated when at least half of the valid cells are; not judged in closed loop.

    Nor is it judged where nothing completed: how many are in flight says nothing where all are refused.
    """
    states = [cell.document.load_state for cell in cells]
    if not states:
        return None
    if 2 * states.count("saturated") >= len(states):
        return "saturated"
    completed = any(cell.judgement.completed for cell in cells)
    return "stable" if completed and "stable" in states else "not_judged"


def _rates(config: Config, cells: Sequence[Cell]) -> Row:
    goodput = known(cell.goodput for cell in cells)
    low, high = stats.t_interval(goodput) or (None, None)
    good, attempted = [cell.judgement.good for cell in cells], [cell.judgement.attempted for cell in cells]
    attainment_low, attainment_high = stats.ratio_interval(good, attempted) or (None, None)
    center = stats.mean(goodput)
    return {
        "goodput_per_second": center,
        "goodput_low_per_second": None if low is None else max(0.0, low),
        "goodput_high_per_second": high,
        "goodput_per_gpu_per_second": None if center is None or not config.gpus else center / config.gpus,
        "attainment_ratio": ratio(sum(good), sum(attempted)),
        "attainment_low_ratio": attainment_low,
        "attainment_high_ratio": attainment_high,
        "requests_per_second": _delivered(cells, lambda cell: cell.document.delivered_requests),
        "output_tokens_per_second": _delivered(cells, lambda cell: cell.document.delivered_output_tokens),
        "total_tokens_per_second": _delivered(cells, lambda cell: cell.document.delivered_total_tokens),
        "makespan_seconds": _makespan([cell.document.makespan_seconds for cell in cells]),
    }


def _makespan(blocks: Sequence[float | None]) -> float | None:
    """Mean over blocks; None unless all have one: the mean of those where nothing failed would flatter."""
    return None if None in blocks else stats.mean(known(blocks))


def _delivered(cells: Sequence[Cell], amount: Callable[[Cell], int | None]) -> float | None:
    return stats.mean(known(rate(amount(cell), cell.seconds) for cell in cells))


def _latencies(cells: Sequence[Cell]) -> Row:
    row: Row = {}
    for name in LATENCIES:
        found = [cell.latencies[name] for cell in cells if name in cell.latencies]
        row[f"{name}_mean_seconds"] = stats.mean([latency.mean for latency in found])
        for p in QUANTILES:
            values = [latency.percentiles[p].value for latency in found]
            low, high = stats.t_interval(values) or (None, None)
            row |= {
                f"{name}_{p}_seconds": stats.mean(values),
                f"{name}_{p}_low_seconds": None if low is None else max(0.0, low),
                f"{name}_{p}_high_seconds": high,
                f"{name}_{p}_small_sample": any(each.percentiles[p].small for each in found) if found else None,
            }
    return row


def _server(cells: Sequence[Cell]) -> Row:
    servers = [(cell, cell.document.server) for cell in cells if cell.document.server is not None]
    counted = [(server.preemptions, sent(cell)) for cell, server in servers if server.preemptions is not None]
    asked = [(server.prefix_hits, server.prefix_queries) for _, server in servers if server.prefix_hits is not None]
    preemptions = math.fsum(count for count, _ in counted) if counted else None
    row: Row = {
        "preemptions": preemptions,
        "preemptions_per_request": ratio(preemptions, sum(requests or 0 for _, requests in counted)),
        "prefix_hit_ratio": ratio(
            math.fsum(hits for hits, _ in asked) if asked else None, math.fsum(queries or 0 for _, queries in asked)
        ),
    }
    for column, field in {"kv_cache_usage": "kv_usage", "running": "running", "waiting": "waiting"}.items():
        unit = "_ratio" if field == "kv_usage" else ""
        row[f"{column}_mean{unit}"] = stats.mean(known(getattr(server, f"{field}_mean") for _, server in servers))
        row[f"{column}_max{unit}"] = max(known(getattr(server, f"{field}_max") for _, server in servers), default=None)
    return row


def start_cells(cells: Sequence[Cell]) -> Row:
    """Of the servers that these cells ran on.

    Warm: its log says that what another start compiled was loaded. Cold: it compiled anew, or compiles nothing. Where
    the log says neither, the start counts only among all of them.
    """
    starts = {(cell.document.key.block, cell.document.attempt): cell.document.start for cell in cells}
    caches = [start.compile_cache for start in starts.values()]

    def seconds(*kinds: str | None) -> float | None:
        return stats.mean(known(start.seconds for start in starts.values() if start.compile_cache in kinds))

    return {
        "start_seconds": seconds("miss", "hit", "unknown", None),
        "cold_start_seconds": seconds("miss", None),
        "warm_start_seconds": seconds("hit"),
        "compile_cache_hit_ratio": ratio(caches.count("hit"), caches.count("hit") + caches.count("miss")),
        "start_order": " ".join(str(start.order) for start in starts.values()) or None,
    }


def gpu_seconds(config: Config, cells: Sequence[Cell]) -> float | None:
    """Spent on these cells, from start to the last request's end; None where no GPU is asked for."""
    if not config.gpus or not cells:
        return None
    ends = [cell.document.window.ended for cell in cells if cell.document.window is not None]
    return config.gpus * math.fsum(ends)


def sent(cell: Cell) -> int | None:
    """Requests that the server got during the whole cell, lead-in and tail included.

    Cells of earlier versions do not say; theirs are those of lead-in and window.
    """
    client, server = cell.document.client, cell.document.server
    if server is not None and server.requests_client is not None:
        return server.requests_client.finished + server.requests_client.other
    return client.sent if client is not None else None


def known(values: Iterable[float | None]) -> list[float]:
    """Those that are known."""
    return [value for value in values if value is not None]
