from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.parse import parse_spec

Build = Callable[..., dict[str, Any]]


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(SpecError) as refused:
        parse_spec(document)
    return str(refused.value)


def test_defaults_are_those_of_the_design(sweep: Build) -> None:
    spec = parse_spec(sweep())
    assert (spec.plan.blocks.min, spec.plan.blocks.most, spec.plan.retries) == (3, 8, 2)
    assert (spec.plan.strategy, spec.plan.indifference, spec.plan.sentinel) == ("exhaustive", 0.05, "auto")
    assert (spec.slo.attainment, spec.workload.warmup.max_seconds, spec.objective.name) == (0.9, 120, "goodput")
    assert spec.workload.window_or_default.duration_seconds == 60
    assert (spec.workload.prompt_lengths, spec.workload.output_lengths) == ((512,), (64,))


def test_times_are_seconds_and_flags_are_text(sweep: Build) -> None:
    spec = parse_spec(sweep(slo={"ttft": "500ms", "e2e": "1m30s"}, configs={"grid": {"max_num_seqs": [8, "16"]}}))
    assert spec.slo.to_document().model_dump(exclude_none=True) == {"ttft": 0.5, "e2e": 90.0, "attainment": 0.9}
    assert spec.configs is not None
    assert spec.configs.grid == {"max_num_seqs": ("8", "16")}


def test_what_is_written_out_reads_back_the_same(sweep: Build) -> None:
    spec = parse_spec(sweep(workload={"requestRate": [0.25], "leadIn": "1s"}, budget={"deadline": "8h"}))
    written = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert parse_spec({**sweep(), "spec": written}) == spec


def test_an_unknown_field_gets_the_nearest_name(sweep: Build) -> None:
    assert refusal(sweep(slo={"tfft": "1s"})) == "spec.slo.tfft: is not a known field; did you mean ttft?"
    assert "spec.plan.blocks.zzz: is not a known field; known here: min, max" in refusal(
        sweep(plan={"blocks": {"zzz": 1}})
    )


def test_all_problems_are_told_at_once(sweep: Build) -> None:
    text = refusal(sweep(plan={"parallelism": 0, "retries": "2"}, results={}))
    assert text.splitlines() == [
        "spec.plan.parallelism: 0: must be at least 1; write a larger value",
        'spec.plan.retries: "2": must be a whole number; write it without quotes and without a point',
        "spec.results.uri: is required; add it",
    ]


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({"plan": {"sentinel": False}}, "in quotes: YAML reads a bare on or off as true or false"),
        ({"slo": {"ttft": "5"}}, 'spec.slo.ttft: "5": is not a duration of at most a year; write a duration such as'),
        ({"configs": {"grid": {"x": [True]}}}, "spec.configs.grid.x[0]: true: must be a whole number or text; put"),
        ({"workload": {"requestRate": [float("nan")]}}, "must be a finite number"),
        ({"workload": {"requestRate": 3}}, "spec.workload.requestRate: 3: must be a list"),
        ({"results": {"uri": "bench/sweeps"}}, "has no known scheme; begin it with s3://"),
        ({"engines": [{"kind": "vllm"}]}, "spec.engines[0].name: is required; add it"),
        ({"configs": {"grid": {"x": []}}}, "spec.configs.grid.x: must have at least 1 item(s), not 0; add some"),
    ],
)
def test_words(parts: dict[str, Any], line: str, sweep: Build) -> None:
    assert line in refusal(sweep(**parts))


def test_a_refused_item_does_not_also_make_its_list_too_short(sweep: Build) -> None:
    assert "at least 1 item" not in refusal(sweep(engines=[{"name": "a", "kind": "other"}]))


def test_values_of_variables_are_not_shown(sweep: Build) -> None:
    text = refusal(sweep(engines=[{"name": "a", "kind": "vllm", "env": [{"name": "KEY", "value": 12345}]}]))
    assert "12345" not in text


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"apiVersion": "v1"}, 'apiVersion: "v1": must be goodput.dev/v1alpha1; write apiVersion'),
        ({"kind": "Sweep"}, 'kind: "Sweep": must be BenchmarkSweep'),
        ({"spec": None}, "spec: is required"),
        ({"sepc": {}}, "sepc: is not a known field"),
    ],
)
def test_the_envelope(change: dict[str, Any], line: str, sweep: Build) -> None:
    assert line in refusal({**sweep(), **change})
