"""Columns of ``tables/goodput`` and their types. Swept flags come between ids and load."""

from __future__ import annotations

from goodput.analysis.cells import LATENCIES, QUANTILES
from goodput.analysis.tables import BOOL, FLOAT, INT, TEXT, Columns

IDS: Columns = {"config": TEXT, "load": TEXT, "engine": TEXT}
LOAD: Columns = {
    "dataset": TEXT,
    "prompt_tokens": INT,
    "output_tokens": INT,
    "length_distribution": TEXT,
    "length_variation_ratio": FLOAT,
    "max_tokens": INT,
    "prefix_groups": INT,
    "prefix_tokens": INT,
    "arrival": TEXT,
    "burstiness": FLOAT,
    "request_rate_per_second": FLOAT,
    "stages": TEXT,
    "speed_ratio": FLOAT,
    "concurrency": INT,
    "window_seconds": FLOAT,
    "window_requests": INT,
}
COUNTS: Columns = {
    "blocks": INT,
    **dict.fromkeys(("attempted", "good", "slow", "failed", "incomplete", "not_sent", "void_cells"), INT),
    "failure_reason": TEXT,
    "load_state": TEXT,
}
RATES: Columns = dict.fromkeys(
    (
        "goodput_per_second",
        "goodput_low_per_second",
        "goodput_high_per_second",
        "goodput_per_gpu_per_second",
        "attainment_ratio",
        "attainment_low_ratio",
        "attainment_high_ratio",
        "requests_per_second",
        "output_tokens_per_second",
        "total_tokens_per_second",
        "makespan_seconds",
    ),
    FLOAT,
)


def latency_columns(limits: str) -> Columns:
    """Mean and percentiles of every latency; ``limits``: what the names of a percentile's interval begin with."""
    return {
        column: kind
        for name in LATENCIES
        for column, kind in [
            (f"{name}_mean_seconds", FLOAT),
            *(
                pair
                for p in QUANTILES
                for pair in [
                    (f"{name}_{p}_seconds", FLOAT),
                    (f"{name}_{p}_{limits}low_seconds", FLOAT),
                    (f"{name}_{p}_{limits}high_seconds", FLOAT),
                    (f"{name}_{p}_small_sample", BOOL),
                ]
            ),
        ]
    }


LATENCY = latency_columns("")
SERVER: Columns = dict.fromkeys(
    (
        "preemptions",
        "preemptions_per_request",
        "kv_cache_usage_mean_ratio",
        "kv_cache_usage_max_ratio",
        "running_mean",
        "running_max",
        "waiting_mean",
        "waiting_max",
        "prefix_hit_ratio",
    ),
    FLOAT,
)
START: Columns = {
    "start_seconds": FLOAT,
    "cold_start_seconds": FLOAT,
    "warm_start_seconds": FLOAT,
    "compile_cache_hit_ratio": FLOAT,
    "start_order": TEXT,
    "gpu_seconds": FLOAT,
}
VERDICT: Columns = {"chosen": BOOL, "verdict": TEXT}
FIXED: Columns = {**IDS, **LOAD, **COUNTS, **RATES, **LATENCY, **SERVER, **START, **VERDICT}
