from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.flagtable import FlagValueError, option, table
from goodput.operator.spec.resolve import resolve

ROOT = Path(__file__).parents[4]
Build = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("flag", "value", "normal"),
    [
        ("max_num_batched_tokens", "8k", "8000"),
        ("max_num_batched_tokens", "8K", "8192"),
        ("max_num_batched_tokens", "25.6k", "25600"),
        ("max_num_seqs", "0128", "128"),
        ("gpu_memory_utilization", "0.90", "0.9"),
        ("gpu_memory_utilization", "9e-1", "0.9"),
        ("enable_prefix_caching", "True", "true"),
        ("compilation_config", '{"mode": 3, "a": 1}', '{"a":1,"mode":3}'),
        ("compilation_config.mode", "3", "3"),
        ("cudagraph_capture_sizes", "1  2 4", "1 2 4"),
        ("max_model_len", "auto", "auto"),
        ("dtype", "bfloat16", "bfloat16"),
    ],
)
def test_each_value_has_one_spelling(flag: str, value: str, normal: str) -> None:
    assert table("vllm").normal(flag, value) == normal


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("max_num_seqs", "8k"),
        ("max_num_batched_tokens", "1.5K"),
        ("max_num_batched_tokens", "many"),
        ("gpu_memory_utilization", "nan"),
        ("gpu_memory_utilization", "high"),
        ("enable_prefix_caching", "yes"),
        ("compilation_config", "{mode: 3}"),
    ],
)
def test_values_of_another_kind_are_refused(flag: str, value: str) -> None:
    with pytest.raises(FlagValueError):
        table("vllm").normal(flag, value)


def test_on_a_command_line() -> None:
    flags = {
        "enable_prefix_caching": "false",
        "enforce_eager": "true",
        "aggregate_engine_logging": "false",
        "cudagraph_capture_sizes": "1 2",
        "max_model_len": "-1",
        "compilation_config.some_key": "x",
    }
    words = table("vllm").arguments(flags)
    assert words == [
        *("--compilation-config.some_key", "x", "--cudagraph-capture-sizes", "1", "2"),
        *("--no-enable-prefix-caching", "--enforce-eager", "--max-model-len=-1"),
    ]
    assert option("max_num_seqs") == "--max-num-seqs"


def test_tables_agree_where_both_engines_know_a_flag() -> None:
    vllm, simulated = table("vllm"), table("simulated")
    shared = set(simulated.kinds) - {"start_seconds", "vocab_size"}
    assert shared <= set(vllm.kinds)
    assert {flag: simulated.kinds[flag] for flag in shared} == {flag: vllm.kinds[flag] for flag in shared}


@pytest.mark.parametrize(("kind", "file"), [("vllm", "vllm-0.32.yaml"), ("simulated", "simulated.yaml")])
def test_the_engines_own_tables_say_the_same(kind: str, file: str) -> None:
    """The parts do not import each other, so each has its table; both were read from the same sources."""
    theirs = yaml.safe_load((ROOT / "engines/goodput/engines/flags" / file).read_text())["flags"]
    ours = table(kind)
    assert set(ours.kinds) | set(ours.managed) == set(theirs)
    words = {"human_int": "size", "text": "str", "boolean": "bool"}
    kinds = {flag: words.get(entry["type"], entry["type"]) for flag, entry in theirs.items()}
    different = {flag for flag in ours.kinds if ours.kinds[flag] != kinds[flag]}
    # Numbers from a list of choices, and dicts that vLLM reads as JSON: text to the engines' table.
    assert different <= {"max_lora_rank", "config_format", "hf_overrides", "limit_mm_per_prompt"}


def test_flags_that_vllm_dropped_are_unknown() -> None:
    assert table("vllm").kind("max_num_partial_prefills") is None
    assert table("vllm").kind("disable_log_requests") is None


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(SpecError) as refused:
        resolve(document)
    return str(refused.value)


def test_an_unknown_flag_gets_the_nearest_name(sweep: Build) -> None:
    text = refusal(sweep(configs={"grid": {"max_num_batched_token": [8]}}))
    assert text == (
        "spec.configs.grid.max_num_batched_token: is no flag of engine vllm; did you mean max_num_batched_tokens?"
    )
    text = refusal(sweep(engines=[{"name": "a", "kind": "vllm", "args": {"tensor_paralel_size": 2}}]))
    assert "is no flag of engine a; did you mean tensor_parallel_size?" in text


def test_a_value_of_another_kind_is_named_with_its_place(sweep: Build) -> None:
    text = refusal(sweep(configs={"grid": {"max_num_seqs": [8, "many"]}}))
    assert text == 'spec.configs.grid.max_num_seqs[1]: "many": must be a whole number; write a number such as 128'


def test_what_the_operator_sets_is_refused(sweep: Build) -> None:
    text = refusal(sweep(configs={"list": [{"port": 8001}]}))
    assert text == "spec.configs.list[0].port: is not for a sweep to set; it is set by the operator"
    text = refusal(sweep(engines=[{"name": "a", "kind": "vllm", "args": {"served_model_name": "x"}}]))
    assert "set spec.model.servedName" in text
