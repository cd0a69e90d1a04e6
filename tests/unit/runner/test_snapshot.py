from __future__ import annotations

from pathlib import Path

import pytest

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
    assert snapshot == Snapshot(stamp=0.0, start_time=12.5)
    assert not snapshot.known
    assert not snapshot.served


def test_a_histogram_whose_base_name_ends_in_total_is_not_mistaken() -> None:
    assert parse('vllm:iteration_tokens_total_bucket{le="1"} 4\nvllm:iteration_tokens_total_sum 9\n', 0.0) == Snapshot(
        stamp=0.0
    )


def test_the_same_but_for_the_time() -> None:
    assert parse("vllm:num_requests_running 1\n", 1.0).same(parse("vllm:num_requests_running 1\n", 2.0))
    assert not parse("vllm:num_requests_running 1\n", 1.0).same(parse("vllm:num_requests_running 2\n", 1.0))
