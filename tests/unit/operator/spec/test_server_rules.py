"""What vLLM would refuse at its start: one accepted and one refused spec for each rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.resolve import resolve

Build = Callable[..., dict[str, Any]]
EAGLE = json.dumps({"method": "eagle3", "num_speculative_tokens": 3, "model": "draft"})
NGRAM = json.dumps({"method": "ngram", "num_speculative_tokens": 3})
DFLASH = json.dumps({"method": "dflash", "num_speculative_tokens": 16, "model": "draft"})

#: id, refused flags, accepted flags, what the refusal says
RULES = [
    ("budget at least 1", {"max_num_batched_tokens": 0}, {"max_num_batched_tokens": 1}, "must be at least 1"),
    ("sequences at least 1", {"max_num_seqs": 0}, {"max_num_seqs": 1}, "must be at least 1"),
    (
        "budget holds the sequences",
        {"max_num_batched_tokens": 64, "max_num_seqs": 128},
        {"max_num_batched_tokens": 128, "max_num_seqs": 128},
        "must be at least max_num_seqs (128)",
    ),
    (
        "whole prefills fit the budget",
        {"enable_chunked_prefill": "false", "max_num_batched_tokens": 2048, "max_model_len": 8192},
        {"enable_chunked_prefill": "false", "max_num_batched_tokens": 8192, "max_model_len": 8192},
        "must be at least max_model_len (8192) without chunked prefill",
    ),
    (
        "threshold of long prefills",
        {"long_prefill_token_threshold": 8000, "max_model_len": 4096},
        {"long_prefill_token_threshold": 4096, "max_model_len": 4096},
        "must not be above max_model_len (4096)",
    ),
    (
        "active sequences",
        {"max_num_active_seqs": 200, "max_num_seqs": 128},
        {"max_num_active_seqs": 128, "max_num_seqs": 128},
        "must not be above max_num_seqs (128)",
    ),
    (
        "requests fit the model's length",
        {"max_model_len": 575},
        {"max_model_len": 576},
        "load 512→64 do not fit max_model_len (575) of config a max_model_len=575; set its max_model_len to 576",
    ),
    (
        "LoRA with speculation",
        {"enable_lora": "true", "speculative_config": EAGLE, "max_num_batched_tokens": 511, "max_num_seqs": 128},
        {"enable_lora": "true", "speculative_config": EAGLE, "max_num_batched_tokens": 512, "max_num_seqs": 128},
        "must be at least max_num_seqs x (num_speculative_tokens + 1) = 512 with LoRA",
    ),
    (
        "drafts leave room in the budget",
        {"speculative_config": DFLASH, "max_num_batched_tokens": 16, "max_num_seqs": 8},
        {"speculative_config": DFLASH, "max_num_batched_tokens": 17, "max_num_seqs": 8},
        "must be above the 16 draft tokens of dflash",
    ),
    (
        "asynchronous scheduling",
        {"async_scheduling": "true", "speculative_config": NGRAM},
        {"async_scheduling": "true", "speculative_config": EAGLE},
        "does not work with speculative decoding by ngram",
    ),
    (
        "asynchronous scheduling by keys",
        {"async_scheduling": "true", "speculative_config.method": "suffix"},
        {"async_scheduling": "true", "spec_method": "deepseek_mtp"},
        "does not work with speculative decoding by suffix",
    ),
    (
        "one attention backend",
        {"attention_backend": "FLASH_ATTN", "attention_config.backend": "FLASHINFER"},
        {"attention_backend": "FLASH_ATTN", "attention_config.flash_attn_version": "3"},
        "both name the backend",
    ),
    (
        "share of the GPU's memory",
        {"gpu_memory_utilization": "1.01"},
        {"gpu_memory_utilization": "1"},
        "must be above 0 and at most 1",
    ),
]


def document(sweep: Build, flags: dict[str, Any]) -> dict[str, Any]:
    image = "vllm/vllm-openai:v0.32.0"
    return sweep(engines=[{"name": "a", "kind": "vllm", "image": image}], configs={"list": [flags]})


@pytest.mark.parametrize(("refused", "accepted", "text"), [pytest.param(*rule[1:], id=rule[0]) for rule in RULES])
def test_a_rule(refused: dict[str, Any], accepted: dict[str, Any], text: str, sweep: Build) -> None:
    with pytest.raises(SpecError) as error:
        resolve(document(sweep, refused))
    assert text in str(error.value)
    assert resolve(document(sweep, accepted)).configs


def test_a_budget_that_no_step_can_fill_is_a_warning(sweep: Build) -> None:
    flags = {"max_num_batched_tokens": 8192, "max_num_seqs": 4, "max_model_len": 1024}
    (warning,) = resolve(document(sweep, flags)).warnings
    assert "above max_num_seqs x max_model_len (4096)" in warning
    assert not resolve(document(sweep, flags | {"max_num_seqs": 8})).warnings


@pytest.mark.parametrize(
    ("grid", "checked"),
    [
        ({"max_num_batched_tokens": [2048, 4096]}, False),
        ({"attention_backend": ["FLASH_ATTN", "FLASHINFER"]}, True),
        ({"speculative_config.num_speculative_tokens": [2, 4]}, True),
        ({"tensor_parallel_size": [1, 2]}, True),
    ],
)
def test_outputs_are_compared_where_an_axis_can_change_them(grid: dict[str, Any], checked: bool, sweep: Build) -> None:
    engines = [{"name": "a", "kind": "vllm", "image": "vllm/vllm-openai:v0.32.0"}]
    assert resolve(sweep(engines=engines, configs={"grid": grid})).output_check is checked
    for wish in ("on", "off"):
        found = resolve(sweep(engines=engines, configs={"grid": grid}, plan={"outputCheck": wish}))
        assert found.output_check is (wish == "on")


def test_outputs_of_several_engines_are_compared_unless_they_are_made_up(sweep: Build) -> None:
    real = [{"name": name, "kind": "vllm", "image": f"vllm/vllm-openai:v0.{name[1:]}.0"} for name in ("a19", "a32")]
    assert resolve(sweep(engines=real)).output_check
    made_up = [{"name": name, "kind": "simulated"} for name in ("a", "b")]
    assert not resolve(sweep(engines=made_up)).output_check
