"""Columns of ``tables/cells`` that tell how it was measured: what was asked, on what, by what client. Pure."""

from __future__ import annotations

from goodput.analysis.cells import Cell
from goodput.analysis.cells_server import GPU_COLUMNS, gpu_columns
from goodput.analysis.schema.cell import CellDocument
from goodput.analysis.tables import FLOAT, INT, TEXT, Columns, Row

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
COLUMNS: Columns = {
    **ASKED,
    "measured_seconds": FLOAT,
    "started_unix_seconds": FLOAT,
    "schedule_sha256": TEXT,
    "prompts_sha256": TEXT,
    "dataset_sha256": TEXT,
    "dataset_rows": INT,
    **GPU_COLUMNS,
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


def run_columns(cell: Cell, gpu_seconds: float | None) -> Row:
    """The values of `COLUMNS`. ``gpu_seconds``: see `goodput_table.gpu_seconds`."""
    document = cell.document
    window, client, start = document.window, document.client, document.start
    dataset = document.provenance.dataset
    asked = {column: getattr(document.asked, column.removeprefix("asked_")) for column in ASKED}
    return {
        **asked,
        "measured_seconds": cell.seconds,
        "started_unix_seconds": window.started_unix if window else None,
        "schedule_sha256": window.schedule_sha256 if window else None,
        "prompts_sha256": window.prompts_sha256 if window else None,
        "dataset_sha256": dataset.sha256 if dataset else None,
        "dataset_rows": dataset.rows if dataset else None,
        **gpu_columns(document.gpu),
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
        "gpu_seconds": gpu_seconds,
        "warnings": "; ".join(document.warnings) or None,
    }


def _kv_blocks(document: CellDocument) -> int | None:
    """As the metrics say it, else the log."""
    server, log = document.server, document.start.log
    known = server.kv_blocks if server is not None else None
    return known if known is not None or log is None else log.kv_blocks
