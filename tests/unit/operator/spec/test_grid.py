from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goodput.analysis import ids
from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.grid import count
from goodput.operator.spec.parse import parse_spec
from goodput.operator.spec.resolve import resolve

Build = Callable[..., dict[str, Any]]
AXES = ("max_num_batched_tokens", "max_num_seqs", "block_size", "seed")
VLLM = {"name": "vllm", "kind": "vllm", "image": "i"}


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(SpecError) as refused:
        resolve(document)
    return str(refused.value)


def labels(document: dict[str, Any]) -> list[str]:
    return [config.label for config in resolve(document).configs]


def test_order_of_keys_does_not_matter_and_order_of_values_does(sweep: Build) -> None:
    first = resolve(sweep(configs={"grid": {"seed": [2, 1], "block_size": [32, 16]}}))
    second = resolve(sweep(configs={"grid": {"block_size": [32, 16], "seed": [2, 1]}}))
    assert first == second
    assert [config.label for config in first.configs] == [
        "vllm block_size=32 seed=2",
        "vllm block_size=32 seed=1",
        "vllm block_size=16 seed=2",
        "vllm block_size=16 seed=1",
    ]
    assert first.reference == first.configs[0].id


def test_ids_are_those_of_effective_flags(sweep: Build) -> None:
    found = resolve(sweep(engines=[{**VLLM, "args": {"max_model_len": 8192, "max_num_seqs": "1"}}])).configs
    flags = {"max_model_len": "8192", "max_num_seqs": "1", "max_num_batched_tokens": "2048"}
    assert found[0].id == ids.config_id("vllm", flags)
    assert found[0].flags == flags
    assert found[0].swept == {"max_num_batched_tokens": "2048"}


def test_points_that_become_equal_are_one_config(sweep: Build) -> None:
    assert len(labels(sweep(configs={"grid": {"max_num_batched_tokens": [8000, "8k", "8000"]}}))) == 1
    engines = [{"name": "a", "kind": "simulated"}, {"name": "b", "kind": "simulated"}]
    assert labels(sweep(engines=engines, configs={"grid": {"max_num_seqs": [8, 16]}})) == [
        "a max_num_seqs=8",
        "a max_num_seqs=16",
        "b max_num_seqs=8",
        "b max_num_seqs=16",
    ]


def test_a_list_overlays_the_args(sweep: Build) -> None:
    engine = {**VLLM, "args": {"max_num_seqs": 64, "max_model_len": 8192}}
    found = resolve(sweep(engines=[engine], configs={"list": [{}, {"max_num_seqs": 32}, {"max_num_seqs": 64}]})).configs
    assert [config.flags["max_num_seqs"] for config in found] == ["64", "32"]


def test_without_configs_each_engine_is_one(sweep: Build) -> None:
    assert labels(sweep(configs=None, engines=[VLLM, {**VLLM, "name": "other"}])) == ["vllm", "other"]


def test_excluded_points_are_left_out(sweep: Build) -> None:
    grid = {"max_num_seqs": [8, 16], "block_size": [16, 32]}
    left = labels(sweep(configs={"grid": grid, "exclude": [{"max_num_seqs": "016", "block_size": 32}]}))
    assert len(left) == 3
    assert "vllm block_size=32 max_num_seqs=16" not in left
    text = refusal(sweep(configs={"grid": grid, "exclude": [{"max_num_seqs": 8}, {"max_num_seqs": 16}]}))
    assert text == "spec.configs.exclude: 2: entries leave no config; exclude fewer"


def test_the_reference_must_mean_one_config(sweep: Build) -> None:
    grid = {"max_num_seqs": [8, 16], "block_size": [16, 32]}
    found = resolve(sweep(configs={"grid": grid, "reference": {"max_num_seqs": 16, "block_size": "32"}}))
    assert found.by_id[found.reference].label == "vllm block_size=32 max_num_seqs=16"
    assert "means 2 configs, not one; name more of its flags" in refusal(
        sweep(configs={"grid": grid, "reference": {"max_num_seqs": 8}})
    )
    assert "means 0 configs, not one; name a config, such as vllm block_size=16" in refusal(
        sweep(configs={"grid": grid, "reference": {"max_num_seqs": 9}})
    )


def test_exclude_and_reference_may_name_an_engine(sweep: Build) -> None:
    engines = [VLLM, {**VLLM, "name": "vllm-old"}]
    configs = {"grid": {"max_num_seqs": [8]}, "reference": {"engine": "vllm-old"}}
    found = resolve(sweep(engines=engines, configs=configs))
    assert found.by_id[found.reference].engine == "vllm-old"
    text = refusal(sweep(engines=engines, configs={"grid": {"max_num_seqs": [8]}, "exclude": [{"engine": "vlm-old"}]}))
    assert text == 'spec.configs.exclude[0].engine: "vlm-old": is not an engine; did you mean vllm-old?'


def test_a_million_cells_are_counted_and_refused_without_expansion(sweep: Build) -> None:
    grid = {flag: list(range(1, 33)) for flag in (*AXES[1:], "stream_interval")}
    document = sweep(configs={"grid": grid})
    assert count(parse_spec(document)).configs == 32**4
    text = refusal(document)
    assert "spec.configs: 1048576: configs are too many, at most 1,000; vary fewer flags" in text
    assert "cells (configs x loads x blocks) are too many, at most 20,000" in text


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    grid=st.dictionaries(
        st.sampled_from(AXES), st.lists(st.integers(256, 300), min_size=1, max_size=3), min_size=1, max_size=4
    )
)
def test_a_grid_has_every_combination_once(grid: dict[str, list[int]], sweep: Build) -> None:
    found = resolve(sweep(configs={"grid": grid})) if _possible(grid) else None
    if found is None:
        return
    wanted = {tuple(sorted(zip(grid, map(str, point), strict=True))) for point in product(*grid.values())}
    assert {tuple(sorted(config.swept.items())) for config in found.configs} == wanted
    assert len({config.id for config in found.configs}) == len(found.configs) == len(wanted)


def _possible(grid: dict[str, list[int]]) -> bool:
    budgets, seqs = grid.get("max_num_batched_tokens"), grid.get("max_num_seqs")
    return budgets is None or seqs is None or min(budgets) >= max(seqs)


def test_loads_ascend_and_their_ids_do_not_depend_on_spelling(sweep: Build) -> None:
    work = {"promptTokens": [128, 64], "outputTokens": [8], "requestRate": [4, 0.5], "window": {"duration": "90s"}}
    found = resolve(sweep(workload=work)).loads
    assert [step.load.label for step in found] == ["64→8 @ 0.5/s", "64→8 @ 4/s", "128→8 @ 0.5/s", "128→8 @ 4/s"]
    same = {**work, "requestRate": [4.0, 0.50], "window": {"duration": "1m30s"}}
    assert [step.load.id for step in resolve(sweep(workload=same)).loads] == [step.load.id for step in found]


def test_closed_loops_keep_requests_in_flight(sweep: Build) -> None:
    (step,) = resolve(sweep(workload={"concurrency": [8], "window": {"requests": 100}})).loads
    assert (step.load.arrival, step.load.concurrency, step.load.request_rate) == ("closed", 8, None)
    assert (step.load.window_seconds, step.load.window_requests) == (None, 100)
