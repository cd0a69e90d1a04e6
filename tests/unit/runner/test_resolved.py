from __future__ import annotations

import json
from pathlib import Path

import pytest

from goodput.runner.resolved import mismatches, resolved_config

GOLDEN = Path(__file__).parents[2] / "data" / "vllm_0.32" / "server_info_config.json"


def test_a_real_servers_config_is_kept_as_text() -> None:
    document = json.loads(GOLDEN.read_text())
    resolved = resolved_config(document if "vllm_config" in document else {"vllm_config": document})
    assert resolved["max_num_batched_tokens"] == "2048"
    assert resolved["enable_chunked_prefill"] == "true"
    assert "max_num_active_seqs" not in resolved  # unset
    assert resolved["num_gpu_blocks"] == "364"


@pytest.mark.parametrize("info", [None, {}, {"vllm_config": "a text"}, {"vllm_config": {"scheduler_config": None}}])
def test_a_server_that_says_nothing_gives_nothing(info: dict[str, object] | None) -> None:
    assert resolved_config(info) == {}


@pytest.mark.parametrize(
    ("flag", "asked", "value"),
    [
        ("max_num_batched_tokens", "4096", "4096"),
        ("max_num_batched_tokens", "4K", "4096"),
        ("max_num_batched_tokens", "4k", "4000"),
        ("gpu_memory_utilization", "0.90", "0.9"),
        ("enforce_eager", "True", "true"),
        ("dtype", "half", "torch.float16"),
        ("dtype", "auto", "torch.bfloat16"),
        ("max_model_len", "-1", "2048"),
        ("kv_cache_dtype", "fp8", "fp8_e4m3"),
    ],
)
def test_the_same_in_other_words_is_no_mismatch(flag: str, asked: str, value: str) -> None:
    field = "cache_dtype" if flag == "kv_cache_dtype" else flag
    assert mismatches({flag: asked}, {field: value}) == []


@pytest.mark.parametrize(
    ("flag", "asked", "value"),
    [
        ("max_num_batched_tokens", "4096", "2048"),
        ("max_num_batched_tokens", "4k", "4096"),
        ("enable_chunked_prefill", "false", "true"),
        ("dtype", "float16", "torch.bfloat16"),
    ],
)
def test_another_value_is_named(flag: str, asked: str, value: str) -> None:
    (sentence,) = mismatches({flag: asked}, {flag: value})
    assert flag in sentence
    assert asked in sentence
    assert value in sentence


def test_what_the_server_hides_is_no_mismatch() -> None:
    assert mismatches({"profile": "teaching"}, {"max_num_seqs": "16"}) == []
