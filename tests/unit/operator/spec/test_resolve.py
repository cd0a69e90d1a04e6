from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.resolve import resolve

Build = Callable[..., dict[str, Any]]
UID = "01234567-89ab-cdef-0123-456789abcdef"
VLLM = {"name": "vllm", "kind": "vllm", "image": "i"}


def refusal(document: dict[str, Any], uid: str | None = None) -> str:
    with pytest.raises(SpecError) as refused:
        resolve(document, uid=uid)
    return str(refused.value)


@pytest.mark.parametrize("name", ["../../evil", "a/b", "A", "a b", "-a", "a..b", "a\n"])
def test_a_name_that_a_cluster_would_not_take_is_refused(name: str, sweep: Build) -> None:
    assert refusal(sweep(name)).startswith("metadata.name: ")


def test_folders(sweep: Build) -> None:
    in_cluster = resolve(sweep("t"), namespace="bench", uid=UID)
    assert in_cluster.folder == "bench.t.01234567"
    local = resolve(sweep("t"))
    assert local.folder.startswith("local.t.")
    assert len(local.folder.rpartition(".")[2]) == 8


@pytest.mark.parametrize(
    "change",
    [
        {"suspend": True},
        {"cancel": True},
        {"budget": {"maxTrials": 3}},
        {"retention": {"ttlAfterFinished": "1h"}},
        {"plan": {"parallelism": 2, "blocks": {"max": 20}}},
        {"results": {"uri": "s3://bench/sweeps", "credentialsSecretRef": {"name": "s"}}},
    ],
)
def test_a_local_sweep_resumes_after_what_may_change_has_changed(change: dict[str, Any], sweep: Build) -> None:
    assert resolve(sweep(**change)).folder == resolve(sweep()).folder


@pytest.mark.parametrize(
    ("work", "folder"),
    [
        ({"requestRate": [2]}, "c11fb6cf"),
        ({"concurrency": [2], "window": {"requests": 50}}, "bb3edcc8"),
        ({"concurrency": [2], "leadIn": "3s", "endpoint": "chat"}, "4565045b"),
    ],
)
def test_a_local_sweep_of_an_earlier_version_resumes(work: dict[str, Any], folder: str) -> None:
    """What was hashed before there were datasets, lengths and stages, hashes the same; so do defaults written out."""
    document: dict[str, Any] = {
        "apiVersion": "goodput.dev/v1alpha1",
        "kind": "BenchmarkSweep",
        "metadata": {"name": "chunk-budget"},
        "spec": {
            "model": {"name": "m"},
            "engines": [{"name": "sim", "kind": "simulated", "args": {"max_model_len": 8192}}],
            "configs": {"grid": {"max_num_batched_tokens": [2048, 4096]}},
            "slo": {"ttft": "500ms", "tpot": "20ms"},
            "results": {"uri": "file:///tmp/x"},
            "workload": work,
        },
    }
    assert resolve(document).folder == f"local.chunk-budget.{folder}"
    written = {"promptTokens": [512], "outputTokens": [128], "window": {"duration": "60s"}, "dataset": "random"}
    document["spec"]["workload"] = {**written, "lengths": {"distribution": "exact"}, **work}
    assert resolve(document).folder == f"local.chunk-budget.{folder}"


@pytest.mark.parametrize(
    "change",
    [{"slo": {"ttft": "1s"}}, {"plan": {"blocks": {"min": 4}}}, {"results": {"uri": "s3://bench/other"}}],
)
def test_any_other_change_is_another_sweep(change: dict[str, Any], sweep: Build) -> None:
    assert resolve(sweep(**change)).folder != resolve(sweep()).folder


def test_evidence_follows_the_engine(sweep: Build) -> None:
    assert resolve(sweep()).evidence == "measured"
    assert resolve(sweep(engines=[{"name": "s", "kind": "simulated"}])).evidence == "synthetic"


@pytest.mark.parametrize(
    ("slo", "lead_in"),
    [
        ({"ttft": "500ms", "tpot": "100ms"}, 5 * (0.5 + 0.1 * 127)),
        ({"ttft": "500ms", "tpot": "1ms"}, 10),
        ({"e2e": "4s", "ttft": "1h"}, 20),
        ({"ttft": "1h"}, 10),
    ],
)
def test_lead_in_is_five_of_the_longest_planned_requests(slo: dict[str, str], lead_in: float, sweep: Build) -> None:
    work = {"outputTokens": [16, 128], "promptTokens": [64], "requestRate": [1]}
    assert [step.lead_in_seconds for step in resolve(sweep(slo=slo, workload=work)).loads] == [lead_in] * 2


def test_lead_in_as_asked_and_drain_as_long_as_the_window(sweep: Build) -> None:
    work = {"requestRate": [2], "leadIn": "1s", "window": {"duration": "90s"}}
    (step,) = resolve(sweep(workload=work)).loads
    assert (step.lead_in_seconds, step.drain_seconds) == (1, 90)
    (step,) = resolve(sweep(workload={"requestRate": [2], "window": {"requests": 400}})).loads
    assert step.drain_seconds == 200
    closed = {"concurrency": [4], "window": {"requests": 1000}}
    (step,) = resolve(sweep(workload=closed, slo={"e2e": "2s"})).loads
    assert step.drain_seconds == 500


def test_sentinels_are_on_above_two_hours(sweep: Build) -> None:
    short, long = (
        {"requestRate": [1], "window": {"duration": "10s"}},
        {"requestRate": [1], "window": {"duration": "30m"}},
    )
    assert not resolve(sweep(workload=short)).sentinel
    assert resolve(sweep(workload=long)).sentinel
    assert not resolve(sweep(workload=long, plan={"sentinel": "off"})).sentinel
    on = resolve(sweep(workload=short, plan={"sentinel": "on"}))
    assert on.sentinels == ("s00", "s01", "s02", "s03")
    assert on.planned_cells == 2 * 1 * 3 + 4


def test_the_estimate_knows_parallelism_and_gpus(sweep: Build) -> None:
    one, two = resolve(sweep()), resolve(sweep(plan={"parallelism": 2}))
    assert two.estimate_seconds == pytest.approx(one.estimate_seconds / 2)
    assert two.estimate_gpu_hours == pytest.approx(one.estimate_gpu_hours)
    cpu = {**VLLM, "resources": {"limits": {"nvidia.com/gpu": 0}}}
    assert resolve(sweep(engines=[cpu])).estimate_gpu_hours == 0


def test_gpus_of_a_config(sweep: Build) -> None:
    configs = {"list": [{}, {"tensor_parallel_size": 2, "data_parallel_size": 2}, {"pipeline_parallel_size": 3}]}
    assert [config.gpus for config in resolve(sweep(configs=configs)).configs] == [1, 4, 3]
    asked = {**VLLM, "resources": {"limits": {"nvidia.com/gpu": 2}}}
    text = refusal(sweep(engines=[asked], configs={"list": [{"tensor_parallel_size": 2}, {}]}))
    assert "spec.engines[0].resources.limits: 2: GPUs do not match tensor x pipeline x data parallel size (1)" in text
    broken = {**VLLM, "resources": {"limits": {"nvidia.com/gpu": "500m"}}}
    assert "a GPU count must be a whole number" in refusal(sweep(engines=[broken]))


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ({"max_num_batched_tokens": 64, "max_num_seqs": 128}, "must be at least max_num_seqs (128)"),
        (
            {"enable_chunked_prefill": "false", "max_num_batched_tokens": 2048, "max_model_len": 8192},
            "must be at least max_model_len (8192) without chunked prefill",
        ),
        ({"long_prefill_token_threshold": 9000, "max_model_len": "8k"}, "must not be above max_model_len (8000)"),
        ({"max_num_active_seqs": 200, "max_num_seqs": 100}, "must not be above max_num_seqs (100)"),
        ({"max_num_seqs": 0}, "must be at least 1"),
        ({"max_model_len": 512}, "prompt and output of load 512→64 do not fit max_model_len (512)"),
    ],
)
def test_what_vllm_would_refuse_is_refused_first(flags: dict[str, Any], line: str, sweep: Build) -> None:
    assert line in refusal(sweep(engines=[VLLM], configs={"list": [flags]}))


@pytest.mark.parametrize(
    "flags",
    [
        {"max_num_batched_tokens": 64},
        {"max_num_batched_tokens": 128, "max_num_seqs": 128},
        {"enable_chunked_prefill": "false", "max_num_batched_tokens": 8192, "max_model_len": 8192},
        {"max_model_len": 576},
        {"max_model_len": "auto"},
    ],
)
def test_what_vllm_takes_is_taken(flags: dict[str, Any], sweep: Build) -> None:
    assert resolve(sweep(engines=[VLLM], configs={"list": [flags]})).configs


def test_a_budget_below_one_trial_is_refused(sweep: Build) -> None:
    work = {"requestRate": [1, 2], "window": {"duration": "10m"}}
    assert 'spec.budget.deadline: "600s": is less than one trial needs' in refusal(
        sweep(workload=work, budget={"deadline": "10m"})
    )
    assert "spec.budget.maxGpuHours: 0.1: is less than one trial needs" in refusal(
        sweep(workload=work, budget={"maxGpuHours": 0.1})
    )
    assert resolve(sweep(workload=work, budget={"deadline": "1h", "maxGpuHours": 1})).configs


def test_a_budget_that_only_fills_the_compile_cache_is_refused(sweep: Build) -> None:
    engines = [{**VLLM, "compileCache": {"mode": "prime", "claimName": "c"}}]
    grid = {"grid": {"max_num_batched_tokens": [2048, 4096]}}
    text = refusal(sweep(engines=engines, configs=grid, budget={"maxTrials": 2}))
    assert "spec.budget.maxTrials: 2: leaves nothing to measure: 2 starts only fill the compile cache" in text
    assert resolve(sweep(engines=engines, configs=grid, budget={"maxTrials": 3})).primes


@pytest.mark.parametrize(
    "work",
    [
        {"arrival": "burst", "window": {"requests": 1000}},
        {"concurrency": [4], "leadIn": "10s", "window": {"requests": 1000}},
    ],
)
def test_a_slow_slo_does_not_make_a_batch_longer_than_its_budget(work: dict[str, Any], sweep: Build) -> None:
    """How long the server takes for so many requests is not known before: a request may take 10 min, not each does."""
    assert resolve(sweep(workload=work, slo={"e2e": "10m"}, budget={"deadline": "30m"})).configs


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ({"model": {"name": "m", "cache": {"create": {"size": "1Gi"}}}}, "spec.model.cache.create"),
        ({"workload": {"search": {"min": 1, "max": 9}}}, "spec.workload.search"),
        ({"objective": {"name": "capacity"}}, "spec.objective.name"),
        ({"objective": {"name": "makespan"}}, "spec.objective.name"),
        ({"plan": {"strategy": "race"}}, "spec.plan.strategy"),
        ({"budget": {"gpuHourPrice": 2.5}}, "spec.budget.gpuHourPrice"),
        ({"scheduling": {"queueName": "q"}}, "spec.scheduling.queueName"),
        ({"scheduling": {"exclusiveNode": True}}, "spec.scheduling.exclusiveNode"),
        ({"retention": {"keepFailedPods": True}}, "spec.retention.keepFailedPods"),
    ],
)
def test_what_is_not_built_is_refused_and_never_ignored(parts: dict[str, Any], field: str, sweep: Build) -> None:
    (line,) = refusal(sweep(**parts)).splitlines()
    assert line.startswith(field)
    assert "is not built yet; " in line


def test_pods_share_no_files(sweep: Build) -> None:
    document = sweep(results={"uri": "file:///results"})
    assert resolve(document).folder
    assert "spec.results.uri" in refusal(document, uid=UID)


def test_an_image_is_needed_in_a_cluster_only(sweep: Build) -> None:
    document = sweep(engines=[{"name": "vllm", "kind": "vllm"}])
    assert resolve(document).configs
    assert "spec.engines[0].image: is required in a cluster" in refusal(document, uid=UID)


def test_a_sweep_has_a_name(sweep: Build) -> None:
    assert refusal({**sweep(), "metadata": {}}) == "metadata.name: is required; name the sweep"


def test_values_are_shown_as_written_and_all_problems_of_a_kind_at_once(sweep: Build) -> None:
    engine = {**VLLM, "startupTimeout": "0h", "args": {"max-num-seqs": 1}}
    text = refusal(sweep(slo={"ttft": "0ms"}, engines=[engine], configs={"grid": {"max_num_seq": [8]}}))
    assert text.splitlines() == [
        "spec.engines[0].args.max-num-seqs: flags are written in snake_case; write max_num_seqs for --max-num-seqs",
        'spec.engines[0].startupTimeout: "0h": must be greater than 0; write a duration such as 20m',
        'spec.slo.ttft: "0ms": must be greater than 0; write a duration such as 500ms',
        "spec.configs.grid.max_num_seq: is no flag of engine vllm; did you mean max_num_seqs?",
    ]
