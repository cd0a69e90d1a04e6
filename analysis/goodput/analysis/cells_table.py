"""``tables/cells``: one row per planned cell, measured or not, with the reason. What was not run is never hidden.

Intervals here are those of one run (``*_this_run_*``): Wilson for attainment, order statistics for percentiles.
They say nothing of what another server start would give.
"""

from __future__ import annotations

import pyarrow as pa

from goodput.analysis import stats
from goodput.analysis.cells import LATENCIES, QUANTILES, Cell
from goodput.analysis.columns import IDS, LOAD
from goodput.analysis.goodput_table import gpu_seconds, load_cells, load_state
from goodput.analysis.metrics import most_frequent, rate
from goodput.analysis.planned import PlannedCell
from goodput.analysis.result import AnalysisResult
from goodput.analysis.schema.cell import CellDocument
from goodput.analysis.schema.planned import Slo
from goodput.analysis.schema.server import GpuColumns
from goodput.analysis.tables import BOOL, FLOAT, INT, TEXT, Columns, Row, build, flag_cells

STATE: Columns = {"block": TEXT, "sentinel": BOOL, "state": TEXT, "reason": TEXT, "attempt": INT, "void_attempts": INT}
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
LATENCY: Columns = {
    column: kind
    for name in LATENCIES
    for column, kind in [
        (f"{name}_mean_seconds", FLOAT),
        *(
            pair
            for p in QUANTILES
            for pair in [
                (f"{name}_{p}_seconds", FLOAT),
                (f"{name}_{p}_this_run_low_seconds", FLOAT),
                (f"{name}_{p}_this_run_high_seconds", FLOAT),
                (f"{name}_{p}_small_sample", BOOL),
            ]
        ),
    ]
}
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
GPU = {
    "gpu_sm_clock_mean_mhz": ("sm_clock_mhz", "mean"),
    "gpu_sm_clock_min_mhz": ("sm_clock_mhz", "min"),
    "gpu_memory_clock_mean_mhz": ("memory_clock_mhz", "mean"),
    "gpu_power_mean_watts": ("power_watts", "mean"),
    "gpu_power_max_watts": ("power_watts", "max"),
    "gpu_temperature_max_celsius": ("temperature_celsius", "max"),
}
"""Column → field of `schema.GpuColumns` and of its spread."""
CLIENT = {
    "send_lag_p50_seconds": "send_lag_p50_seconds",
    "send_lag_p99_seconds": "send_lag_p99_seconds",
    "send_lag_max_seconds": "send_lag_max_seconds",
    "client_cpu_seconds": "cpu_seconds",
    "client_ceiling_events_per_second": "ceiling_events_per_second",
    "client_used_ratio": "used_ratio",
}
"""Column → field of `schema.Client`."""
COUNTED = {
    "client_processes": "processes",
    "client_reads": "reads",
    "client_coalesced_reads": "coalesced_reads",
    "client_descriptors_max": "descriptors_max",
    "client_descriptors_limit": "descriptors_limit",
}
"""The same, whole numbers."""
ASKED: Columns = {
    "asked_prompt_tokens_mean": FLOAT,
    "asked_prompt_tokens_max": INT,
    "asked_output_tokens_mean": FLOAT,
    "asked_output_tokens_max": INT,
    "asked_prefix_hit_ratio": FLOAT,
    "asked_repeated_requests": INT,
    "asked_left_out_rows": INT,
}
"""What was planned, to compare with what the server counted. The fields of `schema.Asked`."""
START_LOG: Columns = {
    "weights_seconds": FLOAT,
    "model_load_seconds": FLOAT,
    "compile_seconds": FLOAT,
    "graph_capture_seconds": FLOAT,
    "graph_capture_gib": FLOAT,
    "init_engine_seconds": FLOAT,
    "kv_cache_memory_gib": FLOAT,
    "kv_cache_tokens": INT,
    "max_concurrency": FLOAT,
    "attention_backend": TEXT,
}
"""As the server's log says it. The fields of `schema.StartLog`."""
RUN: Columns = {
    "measured_seconds": FLOAT,
    "started_unix_seconds": FLOAT,
    "schedule_sha256": TEXT,
    "prompts_sha256": TEXT,
    "dataset_sha256": TEXT,
    "dataset_rows": INT,
    **dict.fromkeys(GPU, FLOAT),
    "gpu_samples": INT,
    "gpu_throttled": TEXT,
    **dict.fromkeys(CLIENT, FLOAT),
    **dict.fromkeys(COUNTED, INT),
    "stamp_source": TEXT,
    "start_order": INT,
    "start_seconds": FLOAT,
    "compile_cache": TEXT,
    "prefix_reset": TEXT,
    **START_LOG,
    "kv_blocks": INT,
    "gpu_uuid": TEXT,
    "node": TEXT,
    "gpu_seconds": FLOAT,
    "warnings": TEXT,
}
_MEANS: Columns = {**RATES, **LATENCY, **dict.fromkeys(SERVER, FLOAT), **SERVED}
FIXED: Columns = {**IDS, **STATE, **LOAD, **COUNTS, **_MEANS, **ASKED, **RUN}
MEASURED = [*COUNTS, *RATES, *LATENCY, *SERVER, *SERVED, *ASKED, *RUN]


def cells_table(result: AnalysisResult) -> pa.Table:
    """The table: planned cells by config, load and block, then those measured beyond the plan."""
    flags, values = flag_cells(result.spec.configs, list(FIXED))
    measured = {cell.document.key: cell for cell in result.cells}
    rows = [
        _planned(result, planned, measured.get(planned.key), values[planned.key.config])
        | _measured(result, measured.get(planned.key))
        for planned in result.planned
    ]
    ids = {**IDS, **flags, **STATE, **LOAD}
    return build(rows, {**ids, **{name: kind for name, kind in FIXED.items() if name not in ids}}, result.spec)


def _planned(result: AnalysisResult, planned: PlannedCell, cell: Cell | None, flags: Row) -> Row:
    config, load = result.configs[planned.key.config], result.loads[planned.key.load]
    return {
        "config": config.id,
        "load": load.id,
        "engine": config.engine,
        **flags,
        "block": planned.key.block,
        "sentinel": planned.sentinel,
        "state": planned.state,
        "reason": planned.reason,
        "attempt": None if cell is None else cell.document.attempt,
        "void_attempts": planned.voids,
        **load_cells(load),
    }


def _measured(result: AnalysisResult, cell: Cell | None) -> Row:
    if cell is None:
        return dict.fromkeys(MEASURED)
    document = cell.document
    asked = {column: getattr(document.asked, column.removeprefix("asked_")) for column in ASKED}
    served = _server(cell) | _served(cell, result.slo)
    return _counts(cell) | _rates(cell) | _latencies(cell) | served | asked | _run(result, cell)


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


def _server(cell: Cell) -> Row:
    return {column: getattr(cell.document.server, field, None) for column, field in SERVER.items()}


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


def _gpu(gpu: GpuColumns | None) -> Row:
    row: Row = {column: getattr(getattr(gpu, field, None), part, None) for column, (field, part) in GPU.items()}
    reasons = None if gpu is None else gpu.throttled
    named = None if reasons is None else ", ".join(f"{reason} {count}" for reason, count in reasons.items()) or "no"
    return row | {"gpu_samples": None if gpu is None else gpu.samples, "gpu_throttled": named}


def _kv_blocks(document: CellDocument) -> int | None:
    """As the metrics say it, else the log."""
    server, log = document.server, document.start.log
    known = server.kv_blocks if server is not None else None
    return known if known is not None or log is None else log.kv_blocks


def _run(result: AnalysisResult, cell: Cell) -> Row:
    document = cell.document
    window, client, start = document.window, document.client, document.start
    dataset = document.provenance.dataset
    return {
        "measured_seconds": cell.seconds,
        "started_unix_seconds": window.started_unix if window else None,
        "schedule_sha256": window.schedule_sha256 if window else None,
        "prompts_sha256": window.prompts_sha256 if window else None,
        "dataset_sha256": dataset.sha256 if dataset else None,
        "dataset_rows": dataset.rows if dataset else None,
        **_gpu(document.gpu),
        **{column: getattr(client, field, None) for column, field in {**CLIENT, **COUNTED}.items()},
        "stamp_source": client.stamp_source if client else None,
        "start_order": start.order,
        "start_seconds": start.seconds,
        "compile_cache": start.compile_cache,
        "prefix_reset": getattr(document.server, "prefix_reset", None),
        **{column: getattr(start.log, column, None) for column in START_LOG},
        "kv_blocks": _kv_blocks(document),
        "gpu_uuid": document.provenance.gpu_uuid,
        "node": document.provenance.node,
        "gpu_seconds": gpu_seconds(result.configs[document.key.config], [cell]),
        "warnings": "; ".join(document.warnings) or None,
    }
