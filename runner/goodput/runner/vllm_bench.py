"""The cell as `vllm bench serve --save-result --save-detailed` would write it, for tools that read that.

The keys are vLLM's (0.32, `vllm/benchmarks/serve.py`); the values are ours, over the window's arrivals:
throughputs count deliveries inside the window, latencies are from the actual send time. As in vLLM the
arrays cover all requests, and a failed one has 0.0 and an entry in ``errors``. Null where we keep nothing:
``max_output_tokens_per_s``, ``rtfx``, the texts, and the single gaps of a request (``itls`` is empty; the
pooled itl figures come from the cell's histogram, 1 % wide).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goodput.analysis.schema.cell import CellDocument, LogHistogram
from goodput.analysis.schema.planned import Load
from goodput.runner.summary import Summary

_PERCENTILE = 99


def vllm_bench(cell: CellDocument, requests: pa.Table, summary: Summary) -> bytes:
    """The JSON document. ``requests`` are all rows of the cell; ``summary`` is of the same cell."""
    rows = requests.filter(pc.field("in_window")).to_pylist()
    document = {
        **_identity(cell, len(rows)),
        **_totals(cell, rows, summary),
        **_figures("ttft", [row["first_s"] - row["sent_s"] for row in rows if _completed(row)]),
        **_figures("tpot", [gap for row in rows if _completed(row) and (gap := _tpot(row)) is not None]),
        **_itl_figures(cell.itl),
        **_figures("e2el", [row["last_s"] - row["sent_s"] for row in rows if _completed(row)]),
        **_details(rows),
    }
    return json.dumps(document, indent=1, allow_nan=False).encode() + b"\n"


def _identity(cell: CellDocument, planned: int) -> dict[str, Any]:
    load, window = cell.load, cell.window
    started = 0.0 if window is None else window.started_unix
    return {
        "date": datetime.fromtimestamp(started, UTC).strftime("%Y%m%d-%H%M%S"),
        "endpoint_type": "vllm",
        "backend": "vllm",
        "label": None,
        "model_id": cell.provenance.model,
        "tokenizer_id": cell.provenance.model,
        "num_prompts": planned,
        # vLLM puts the strings of --metadata here.
        "evidence": cell.evidence,
        "config": cell.key.config,
        "load": cell.key.load,
        "block": cell.key.block,
        "attempt": str(cell.attempt),
        "outcome": cell.outcome,
        "request_rate": load.highest_rate or "inf",
        "burstiness": _burstiness(load),
        "max_concurrency": load.concurrency,
    }


def _burstiness(load: Load) -> float | str:
    return "inf" if load.arrival == "constant" else load.burstiness or 1.0


def _totals(cell: CellDocument, rows: Sequence[dict[str, Any]], summary: Summary) -> dict[str, Any]:
    seconds = None if cell.window is None else cell.window.seconds
    done = [row for row in rows if _completed(row)]
    return {
        "duration": seconds,
        "completed": len(done),
        "failed": len(rows) - len(done),
        "total_input_tokens": sum(row["prompt_tokens"] or 0 for row in done),
        "total_output_tokens": sum(row["output_tokens"] or 0 for row in done),
        "request_throughput": _per_second(cell.delivered_requests, seconds),
        "request_goodput": summary.goodput if _has_slo(cell) else None,
        "output_throughput": _per_second(cell.delivered_output_tokens, seconds),
        "total_token_throughput": _per_second(cell.delivered_total_tokens, seconds),
        "max_output_tokens_per_s": None,
        "max_concurrent_requests": _most_open(rows),
        "rtfx": None,
        "latencies": [row["last_s"] - row["sent_s"] if _completed(row) else 0.0 for row in rows],
        "queue_times": [_late(row) for row in rows],
    }


def _details(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "input_lens": [row["prompt_tokens"] for row in rows],
        "output_lens": [row["output_tokens"] or 0 for row in rows],
        "ttfts": [row["first_s"] - row["sent_s"] if _completed(row) else 0.0 for row in rows],
        "itls": [[] for _ in rows],
        "start_times": [row["sent_s"] for row in rows],
        "generated_texts": [None for _ in rows],
        "errors": ["" if _completed(row) else row["reason"] or row["outcome"] for row in rows],
    }


def _figures(name: str, seconds: Sequence[float]) -> dict[str, float | None]:
    keys = (f"mean_{name}_ms", f"median_{name}_ms", f"std_{name}_ms", f"p{_PERCENTILE}_{name}_ms")
    if not seconds:
        return dict.fromkeys(keys)
    values = np.asarray(seconds) * 1000
    figures = (values.mean(), np.median(values), values.std(), np.percentile(values, _PERCENTILE))
    return dict(zip(keys, map(float, figures), strict=True))


def _itl_figures(histogram: LogHistogram | None) -> dict[str, float | None]:
    if histogram is None:
        return _figures("itl", ())
    buckets = sorted(histogram.counts.items())
    middles = [0.0, *(histogram.base ** (bucket + 0.5) for bucket, _ in buckets)]
    counts = [histogram.zero, *(count for _, count in buckets)]
    total = sum(counts)
    if not total:
        return _figures("itl", ())
    values, weights = np.asarray(middles) * 1000, np.asarray(counts)
    mean = float(np.average(values, weights=weights))
    std = math.sqrt(float(np.average((values - mean) ** 2, weights=weights)))
    ranks = np.cumsum(weights)
    median, high = (float(values[np.searchsorted(ranks, share * total)]) for share in (0.5, _PERCENTILE / 100))
    return {"mean_itl_ms": mean, "median_itl_ms": median, "std_itl_ms": std, f"p{_PERCENTILE}_itl_ms": high}


def _completed(row: dict[str, Any]) -> bool:
    return bool(row["outcome"] == "completed" and row["first_s"] is not None)


def _tpot(row: dict[str, Any]) -> float | None:
    tokens = row["output_tokens"] or 0
    return float(row["last_s"] - row["first_s"]) / (tokens - 1) if tokens > 1 else None


def _late(row: dict[str, Any]) -> float:
    sent, planned = row["sent_s"], row["planned_s"]
    return 0.0 if sent is None or planned is None else max(0.0, sent - planned)


def _has_slo(cell: CellDocument) -> bool:
    return any(limit is not None for limit in (cell.slo.ttft, cell.slo.tpot, cell.slo.itl, cell.slo.e2e))


def _per_second(count: int | None, seconds: float | None) -> float | None:
    return None if count is None or not seconds else count / seconds


def _most_open(rows: Sequence[dict[str, Any]]) -> int:
    changes = [(row["sent_s"], 1) for row in rows if row["sent_s"] is not None and row["end_s"] is not None]
    changes += [(row["end_s"], -1) for row in rows if row["sent_s"] is not None and row["end_s"] is not None]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
