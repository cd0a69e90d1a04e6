import argparse
from importlib import resources
from typing import Any

import pytest
import yaml

from goodput.engines.simulated.arguments import parser
from goodput.engines.transformers.arguments import parser as baseline_parser

TYPES = {"int", "human_int", "float", "text", "list", "json", "boolean", "switch"}


def flags(name: str) -> dict[str, dict[str, str]]:
    text = resources.files("goodput.engines").joinpath("flags", name).read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    assert document["source"]
    rows: dict[str, dict[str, str]] = document["flags"]
    return rows


@pytest.mark.parametrize("name", ["simulated.yaml", "transformers.yaml", "vllm-0.32.yaml"])
def test_rows_are_complete(name: str) -> None:
    for flag, row in flags(name).items():
        assert flag == flag.lower().replace("-", "_")
        assert set(row) == {"type", "section"}
        assert row["type"] in TYPES


@pytest.mark.parametrize(("name", "parser"), [("simulated.yaml", parser()), ("transformers.yaml", baseline_parser())])
def test_an_engines_list_is_its_parser(name: str, parser: argparse.ArgumentParser) -> None:
    actions = {a.dest: a for a in parser._actions if a.option_strings and a.dest != "help"}
    rows = flags(name)
    assert set(rows) == set(actions)
    for flag, row in rows.items():
        boolean = isinstance(actions[flag], argparse.BooleanOptionalAction)
        assert (row["type"] == "boolean") == boolean
        assert (row["type"] == "list") == (actions[flag].nargs == "+")


@pytest.mark.parametrize("name", ["simulated.yaml", "transformers.yaml"])
def test_what_an_engine_shares_with_vllm_has_one_type(name: str) -> None:
    ours, vllm = flags(name), flags("vllm-0.32.yaml")
    for flag, row in ours.items():
        if row["section"] not in ("simulator", "baseline"):
            assert vllm[flag] == row | {"section": vllm[flag]["section"]}, flag


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("max_num_batched_tokens", "human_int"),
        ("max_num_seqs", "int"),
        ("long_prefill_token_threshold", "int"),
        ("enable_prefix_caching", "boolean"),
        ("enforce_eager", "boolean"),
        ("disable_log_stats", "switch"),
        ("gpu_memory_utilization", "float"),
        ("tensor_parallel_size", "int"),
        ("attention_backend", "text"),
        ("speculative_config", "json"),
        ("shutdown_timeout", "int"),
        ("served_model_name", "list"),
    ],
)
def test_flags_of_vllm_that_sweeps_use_are_known(name: str, kind: str) -> None:
    assert flags("vllm-0.32.yaml")[name]["type"] == kind


@pytest.mark.parametrize("gone", ["max_num_partial_prefills", "disable_log_requests", "max_long_partial_prefills"])
def test_flags_that_vllm_dropped_are_not_known(gone: str) -> None:
    assert gone not in flags("vllm-0.32.yaml")
