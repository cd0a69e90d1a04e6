from __future__ import annotations

import json

import pyarrow as pa
import pytest

from goodput.analysis.schema.cell import CellDocument
from goodput.analysis.schema.planned import Load
from goodput.runner.summary import Summary, summarize
from goodput.runner.vllm_bench import vllm_bench

# vLLM 0.32, vllm/benchmarks/serve.py: --save-result --save-detailed --percentile-metrics ttft,tpot,itl,e2el
IDENTITY = {"date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts"}
LOAD = {"request_rate", "burstiness", "max_concurrency"}
TOTALS = {
    *("duration", "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput"),
    *("request_goodput", "output_throughput", "total_token_throughput", "max_output_tokens_per_s"),
    *("max_concurrent_requests", "rtfx", "latencies", "queue_times"),
}
FIGURES = {
    f"{figure}_{metric}_ms" for figure in ("mean", "median", "std", "p99") for metric in ("ttft", "tpot", "itl", "e2el")
}
DETAILS = {"input_lens", "output_lens", "ttfts", "itls", "start_times", "generated_texts", "errors"}
METADATA = {"evidence", "config", "load", "block", "attempt", "outcome"}


@pytest.fixture
def summary(cell: CellDocument, requests: pa.Table) -> Summary:
    assert cell.window is not None
    return summarize(requests, cell.load, cell.slo, cell.window.seconds)


def test_the_keys_are_vllms(cell: CellDocument, requests: pa.Table, summary: Summary) -> None:
    document = json.loads(vllm_bench(cell, requests, summary))
    assert set(document) == IDENTITY | LOAD | TOTALS | FIGURES | DETAILS | METADATA
    assert all(isinstance(document[key], str) for key in METADATA)


def test_the_values_are_the_windows(cell: CellDocument, requests: pa.Table, summary: Summary) -> None:
    document = json.loads(vllm_bench(cell, requests, summary))
    assert (document["num_prompts"], document["completed"], document["failed"]) == (4, 2, 2)
    assert document["duration"] == 2.0
    assert document["request_throughput"] == 1.0
    assert document["total_token_throughput"] == 36.0
    assert document["request_goodput"] == 0.5
    assert document["median_ttft_ms"] == pytest.approx((99 + 999) / 2)
    assert document["mean_tpot_ms"] == pytest.approx(100)
    assert document["mean_itl_ms"] == pytest.approx(100, rel=0.01)
    assert document["errors"] == ["", "", "Http500", "Stopped"]
    assert document["ttfts"][2:] == [0.0, 0.0]
    assert document["start_times"][3] is None
    assert document["evidence"] == "synthetic"
    for key in ("latencies", "queue_times", *DETAILS):
        assert len(document[key]) == 4


def test_nothing_completed_gives_null_never_zero(cell: CellDocument, requests: pa.Table) -> None:
    none = requests.filter(pa.compute.field("outcome") != "completed")
    empty = cell.model_copy(update={"itl": None})
    document = json.loads(vllm_bench(empty, none, summarize(none, cell.load, cell.slo, 2.0)))
    assert {document[key] for key in FIGURES} == {None}
    assert document["request_goodput"] == 0


def test_the_summary_judges_arrivals_of_the_window(summary: Summary) -> None:
    assert (summary.goodput, summary.attainment, summary.offered) == (0.5, 0.25, 2.0)
    assert set(summary.ttft) == {0.5, 0.99}


def test_an_empty_window_has_no_summary(cell: CellDocument, requests: pa.Table) -> None:
    empty = summarize(requests.slice(0, 0), cell.load, cell.slo, 0.0)
    assert (empty.goodput, empty.attainment, empty.offered, empty.ttft) == (None, None, None, {})


def test_where_no_rate_is_planned_none_was_offered(cell: CellDocument, requests: pa.Table) -> None:
    """Requests over a burst's makespan, or over a closed loop's window, are what the server made of them."""
    burst = Load(prompt_tokens=8, output_tokens=4, arrival="burst", window_requests=4)
    closed = Load(prompt_tokens=8, output_tokens=4, arrival="closed", concurrency=4, window_seconds=2)
    for load in (burst, closed):
        summary = summarize(requests, load, cell.slo, 2.0)
        assert summary.offered is None
        assert summary.goodput is not None
