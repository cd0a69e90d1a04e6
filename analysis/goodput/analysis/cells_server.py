"""Columns of ``tables/cells`` that the server's metrics and the exporter of its GPU make. Pure."""

from __future__ import annotations

from goodput.analysis.cells import Cell
from goodput.analysis.schema.planned import Slo
from goodput.analysis.schema.server import GpuColumns
from goodput.analysis.tables import BOOL, FLOAT, INT, TEXT, Columns, Row

SERVER = {
    "preemptions": "preemptions",
    "kv_cache_usage_mean_ratio": "kv_usage_mean",
    "kv_cache_usage_p95_ratio": "kv_usage_p95",
    "kv_cache_usage_max_ratio": "kv_usage_max",
    "running_mean": "running_mean",
    "running_p95": "running_p95",
    "running_max": "running_max",
    "waiting_mean": "waiting_mean",
    "waiting_p95": "waiting_p95",
    "waiting_max": "waiting_max",
    "prefix_hit_ratio": "prefix_hit_ratio",
}
"""Column → field of `schema.ServerColumns`."""
HISTOGRAMS = ("ttft", "tpot", "itl", "e2e", "queue")
"""The server's own, over the whole cell: exact means, and exact shares where a limit of the SLO is an edge."""
LIMITED = ("ttft", "tpot", "itl", "e2e")
SERVED: Columns = {
    "server_samples": INT,
    "server_incomplete": TEXT,
    "server_requests": INT,
    "client_requests": INT,
    "counts_agree": BOOL,
    **{f"server_{name}_mean_seconds": FLOAT for name in HISTOGRAMS},
    **{f"server_{name}_within_slo_ratio": FLOAT for name in LIMITED},
}
COLUMNS: Columns = {**dict.fromkeys(SERVER, FLOAT), **SERVED}
GPU = {
    "gpu_sm_clock_mean_mhz": ("sm_clock_mhz", "mean"),
    "gpu_sm_clock_min_mhz": ("sm_clock_mhz", "min"),
    "gpu_memory_clock_mean_mhz": ("memory_clock_mhz", "mean"),
    "gpu_power_mean_watts": ("power_watts", "mean"),
    "gpu_power_max_watts": ("power_watts", "max"),
    "gpu_temperature_max_celsius": ("temperature_celsius", "max"),
}
"""Column → field of `schema.GpuColumns` and of its spread."""
GPU_COLUMNS: Columns = {**dict.fromkeys(GPU, FLOAT), "gpu_samples": INT, "gpu_throttled": TEXT}


def server_columns(cell: Cell, slo: Slo) -> Row:
    """The values of `COLUMNS`."""
    gauges = {column: getattr(cell.document.server, field, None) for column, field in SERVER.items()}
    return gauges | _served(cell, slo)


def _served(cell: Cell, slo: Slo) -> Row:
    server = cell.document.server
    if server is None:
        return dict.fromkeys(SERVED)
    client, finished, histograms = server.requests_client, server.requests_finished, server.histograms
    row: Row = {
        "server_samples": server.samples,
        "server_incomplete": server.reason,
        "server_requests": None if finished is None else round(sum(finished.values())),
        "client_requests": None if client is None else client.finished + client.other,
        "counts_agree": server.counts_agree,
    }
    for name in HISTOGRAMS:
        row[f"server_{name}_mean_seconds"] = histograms[name].mean if name in histograms else None
    for name in LIMITED:
        limit = getattr(slo, name)
        row[f"server_{name}_within_slo_ratio"] = histograms[name].within(limit) if name in histograms else None
    return row


def gpu_columns(gpu: GpuColumns | None) -> Row:
    """The values of `GPU_COLUMNS`."""
    row: Row = {column: getattr(getattr(gpu, field, None), part, None) for column, (field, part) in GPU.items()}
    reasons = None if gpu is None else gpu.throttled
    named = None if reasons is None else ", ".join(f"{reason} {count}" for reason, count in reasons.items()) or "no"
    return row | {"gpu_samples": None if gpu is None else gpu.samples, "gpu_throttled": named}
