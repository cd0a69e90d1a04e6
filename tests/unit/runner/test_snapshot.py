from __future__ import annotations

from pathlib import Path

import pytest

from goodput.analysis.schema.server import ServerHistogram
from goodput.runner.snapshot import Snapshot, parse

GOLDEN = Path(__file__).parents[2] / "data" / "vllm_0.32"


def test_a_real_servers_text_is_read() -> None:
    snapshot = parse((GOLDEN / "metrics_loaded.txt").read_text(), stamp=5.0)
    assert snapshot.stamp == 5.0
    assert (snapshot.running, snapshot.waiting, snapshot.preemptions) == (0, 0, 0)
    assert snapshot.kv_usage == 0
    assert snapshot.block_size == 128
    assert snapshot.kv_blocks == 364
    assert snapshot.finished is not None
    assert snapshot.finished["length"] == 43
    assert set(snapshot.finished) == {"stop", "length", "abort", "error", "repetition"}
    assert snapshot.start_time is not None
    assert snapshot.served


def test_an_idle_server_has_served_nothing() -> None:
    snapshot = parse((GOLDEN / "metrics_idle.txt").read_text(), stamp=0.0)
    assert snapshot.known
    assert not snapshot.served


def test_engines_are_summed_and_the_fullest_cache_counts() -> None:
    text = """
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:generation_tokens_total{engine="0"} 10.0
vllm:generation_tokens_total{engine="1"} 5.0
vllm:request_success_total{engine="0",finished_reason="length"} 1.0
vllm:request_success_total{engine="1",finished_reason="length"} 2.0
vllm:request_success_total{engine="1",finished_reason="abort"} 1.0
vllm:cache_config_info{engine="0",num_gpu_blocks="100",block_size="16"} 1.0
vllm:cache_config_info{engine="1",num_gpu_blocks="100",block_size="16"} 1.0
"""
    snapshot = parse(text, 0.0)
    assert (snapshot.running, snapshot.waiting, snapshot.kv_usage) == (7, 1, 0.75)
    assert snapshot.generation_tokens == 15
    assert snapshot.finished == {"length": 3, "abort": 1}
    assert (snapshot.kv_blocks, snapshot.block_size) == (200, 16)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("vllm:gpu_cache_usage_perc", "kv_usage"),
        ("vllm:gpu_prefix_cache_queries_total", "prefix_queries"),
        ("vllm:gpu_prefix_cache_hits_total", "prefix_hits"),
    ],
)
def test_older_names_mean_the_same(name: str, field: str) -> None:
    assert getattr(parse(f"{name} 0.5\n", 0.0), field) == 0.5


def test_both_names_at_once_count_once() -> None:
    text = "vllm:kv_cache_usage_perc 0.5\nvllm:gpu_cache_usage_perc 0.5\n"
    text += "vllm:prefix_cache_queries_total 7\nvllm:gpu_prefix_cache_queries_total 7\n"
    snapshot = parse(text, 0.0)
    assert (snapshot.kv_usage, snapshot.prefix_queries) == (0.5, 7)


def test_what_is_not_exposed_is_unknown_not_zero() -> None:
    snapshot = parse("process_start_time_seconds 12.5\n", 0.0)
    assert snapshot == Snapshot(
        stamp=0.0,
        start_time=12.5,
        names={"start_time": "process_start_time_seconds"},
        problem="NoServerMetrics: the numbers of requests are not in /metrics",
    )
    assert not snapshot.known
    assert not snapshot.served


def test_a_histogram_whose_base_name_ends_in_total_is_not_mistaken() -> None:
    snapshot = parse('vllm:iteration_tokens_total_bucket{le="1"} 4\nvllm:iteration_tokens_total_sum 9\n', 0.0)
    assert (snapshot.names, snapshot.histograms, snapshot.generation_tokens) == ({}, {}, None)


def test_not_a_number_is_unknown() -> None:
    assert parse("vllm:num_requests_running NaN\n", 0.0).running is None


@pytest.mark.parametrize("text", ["vllm:num_requests_running\n", 'vllm:num_requests_running{engine="0 1\n'])
def test_a_broken_line_is_a_problem_not_an_error(text: str) -> None:
    snapshot = parse(text, 1.0)
    assert not snapshot.known
    assert (snapshot.problem or "").startswith("NoServerMetrics: a line cannot be read")


def test_histograms_of_engines_are_summed_and_unequal_ones_are_left_out() -> None:
    line = 'vllm:time_to_first_token_seconds_bucket{{engine="{0}",le="{1}"}} {2}\n'
    both = "".join(line.format(*row) for row in [(0, 0.1, 1), (0, "+Inf", 3), (1, 0.1, 2), (1, "+Inf", 2)])
    both += 'vllm:time_to_first_token_seconds_sum{engine="0"} 5\nvllm:time_to_first_token_seconds_sum{engine="1"} 1\n'
    assert parse(both, 0.0).histograms == {"ttft": ServerHistogram(edges=(0.1,), counts=(3, 2), total=6)}
    assert parse(both + line.format(1, 0.5, 2), 0.0).histograms == {}
    assert parse(line.format(0, 0.1, 1), 0.0).histograms == {}


def test_beside_the_load_histograms_are_not_parsed() -> None:
    snapshot = parse((GOLDEN / "metrics_loaded.txt").read_text(), 0.0, whole=False)
    assert snapshot.known
    assert (snapshot.histograms, snapshot.names) == ({}, {})


def test_the_same_but_for_the_time() -> None:
    assert parse("vllm:num_requests_running 1\n", 1.0).same(parse("vllm:num_requests_running 1\n", 2.0))
    assert not parse("vllm:num_requests_running 1\n", 1.0).same(parse("vllm:num_requests_running 2\n", 1.0))
