from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from goodput.operator.spec.engine import EngineSpec
from goodput.operator.spec.engineversion import (
    flags_of,
    image_version,
    known_versions,
    table_version,
    version_warning,
)
from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.flagtable import FlagTable, FlagValueError, option
from goodput.operator.spec.flagtable import table as table_of
from goodput.operator.spec.resolve import resolve

ROOT = Path(__file__).parents[4]
Build = Callable[..., dict[str, Any]]


def table(kind: str) -> FlagTable:
    return flags_of(EngineSpec(name="a", kind=kind, image="vllm/vllm-openai:v0.32.0"))  # type: ignore[arg-type]


def vllm(image: str | None) -> EngineSpec:
    return EngineSpec(name="a", kind="vllm", image=image)


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
        ("tensor_parallel_size", "-1"),
        ("data_parallel_size", "0"),
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


@pytest.mark.parametrize(
    ("kind", "own"),
    [("simulated", {"start_seconds", "vocab_size"}), ("transformers", {"attn_implementation", "device"})],
)
def test_tables_agree_where_two_engines_know_a_flag(kind: str, own: set[str]) -> None:
    vllm, ours = table("vllm"), table(kind)
    shared = set(ours.kinds) - own
    assert shared <= set(vllm.kinds)
    assert {flag: ours.kinds[flag] for flag in shared} == {flag: vllm.kinds[flag] for flag in shared}


def test_what_the_baseline_has_not_is_a_flag_of_vllm() -> None:
    absent = set(table("transformers").absent)
    assert absent <= set(table("vllm").kinds)
    assert not absent & (set(table("transformers").kinds) | set(table("transformers").managed))


@pytest.mark.parametrize(
    ("kind", "file"),
    [("vllm", "vllm-0.32.yaml"), ("simulated", "simulated.yaml"), ("transformers", "transformers.yaml")],
)
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


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:v0.32.0", (0, 32)),
        ("vllm/vllm-openai:v0.19.1-cu130", (0, 19)),
        ("registry.example:5000/vllm-cpu:0.11.2@sha256:0123", (0, 11)),
        ("registry.example:5000/vllm-openai", None),
        ("vllm/vllm-openai:latest", None),
        ("vllm/vllm-openai@sha256:0123", None),
        (None, None),
    ],
)
def test_the_version_is_in_the_tag(image: str | None, version: tuple[int, int] | None) -> None:
    assert image_version(image) == version


def test_the_nearest_known_version_stands_for_an_unknown_one() -> None:
    assert known_versions() == ((0, 11), (0, 19), (0, 32))
    nearest = {"v0.12.0": (0, 11), "v0.20.2": (0, 19), "v0.40.0": (0, 32), "latest": (0, 32)}
    for tag, version in nearest.items():
        engine = vllm(f"vllm/vllm-openai:{tag}")
        assert table_version(engine) == version
        assert f"flags are checked against vLLM {version[0]}.{version[1]}" in (version_warning(engine) or "")
    assert version_warning(vllm("vllm/vllm-openai:v0.19.0")) is None
    assert version_warning(EngineSpec(name="a", kind="simulated")) is None


def test_every_version_has_its_own_flags(sweep: Build) -> None:
    def engine(tag: str, flag: str) -> dict[str, Any]:
        image = f"vllm/vllm-openai:{tag}"
        return sweep(engines=[{"name": "a", "kind": "vllm", "image": image, "args": {flag: 4}}])

    assert resolve(engine("v0.19.0", "max_num_partial_prefills")).configs
    assert "is no flag of engine a" in refusal(engine("v0.32.0", "max_num_partial_prefills"))
    assert resolve(engine("v0.32.0", "max_num_active_seqs")).configs
    assert "is no flag of engine a" in refusal(engine("v0.19.0", "max_num_active_seqs"))


def test_an_unknown_version_is_a_warning_of_the_sweep(sweep: Build) -> None:
    engines = [{"name": "a", "kind": "vllm", "image": "vllm/vllm-openai:latest"}]
    assert resolve(sweep(engines=engines)).warnings == (
        "engine a: image vllm/vllm-openai:latest has no version in its tag: its flags are checked against vLLM 0.32",
    )
    engines[0]["image"] = "vllm/vllm-openai:v0.32.1"
    assert resolve(sweep(engines=engines)).warnings == ()


@pytest.mark.parametrize(
    ("flag", "good", "bad", "fix"),
    [
        ("kv_cache_dtype", "fp8_e4m3", "fp8_e4m4", "did you mean fp8_e4m3?"),
        ("attention_backend", "FLASH_ATTN", "FLASH", "did you mean"),
        ("attention_backend", "auto", "quickest", "write one of"),
        ("dtype", "bfloat16", "BFLOAT16", "write one of"),
        ("scheduling_policy", "priority", "lifo", "write one of"),
        ("max_lora_rank", "16", "17", "did you mean 1"),
    ],
)
def test_values_outside_the_choices_are_refused(flag: str, good: str, bad: str, fix: str) -> None:
    assert table("vllm").normal(flag, good) == good
    with pytest.raises(FlagValueError) as refused:
        table("vllm").normal(flag, bad)
    assert f"is no {flag} of vLLM 0.32.0" in refused.value.message
    assert fix in refused.value.fix


@pytest.mark.parametrize("spelling", ["flash_attn", "FLASH-ATTN", "Flash_Attn"])
def test_a_backend_has_one_spelling(spelling: str) -> None:
    assert table("vllm").normal("attention_backend", spelling) == "FLASH_ATTN"


def test_an_unset_choice_is_none() -> None:
    assert table("vllm").normal("mm_encoder_attn_dtype", "None") == "None"


def test_all_versions_share_what_the_operator_sets() -> None:
    for major, minor in known_versions():
        flags = table_of("vllm", f"{major}.{minor}")
        assert flags.managed == table_of("vllm").managed
        assert not flags.managed.keys() & flags.kinds.keys()
        assert {"max_num_batched_tokens", "max_num_seqs", "long_prefill_token_threshold"} <= flags.kinds.keys()
