"""Every example of docs/workloads.md is a workload that can be planned."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from goodput.operator.spec.planview import render_plan
from goodput.operator.spec.resolve import resolve

PAGE = (Path(__file__).parents[4] / "docs/workloads.md").read_text()
EXAMPLES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)]
ENGINE = {"name": "vllm", "kind": "vllm", "image": "i", "args": {"max_model_len": 16384}}
Build = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("workload", EXAMPLES)
def test_each_example_can_be_planned(workload: dict[str, Any], sweep: Build) -> None:
    found = resolve(sweep(workload=workload, engines=[ENGINE]), uid="0123456789")
    labels = [step.load.label for step in found.loads]
    assert len(set(labels)) == len(labels) > 0
    plan = render_plan(found)
    assert all(label in plan for label in labels)


def test_every_dataset_and_arrival_has_one() -> None:
    assert {example.get("dataset", "random") for example in EXAMPLES} == {"random", "sharegpt", "jsonl", "trace"}
    assert {example.get("arrival", "poisson") for example in EXAMPLES} == {"poisson", "burst", "replay"}
