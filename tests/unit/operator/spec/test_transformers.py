"""The sequential baseline in a sweep: its flags, its one config beside vLLM's, its command line, its GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goodput.analysis.schema.planned import Config
from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.resolve import resolve
from goodput.operator.trialplan import warmup_concurrency

Build = Callable[..., dict[str, Any]]
BASELINE = {"name": "baseline", "kind": "transformers", "image": "goodput-transformers:1"}
VLLM = {"name": "vllm", "kind": "vllm", "image": "vllm/vllm-openai:v0.32.0"}


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(SpecError) as refused:
        resolve(document)
    return str(refused.value)


def by_engine(sweep: dict[str, Any]) -> dict[str, list[Config]]:
    found: dict[str, list[Config]] = {}
    for config in resolve(sweep).configs:
        found.setdefault(config.engine, []).append(config)
    return found


def test_a_budget_is_an_axis_of_vllm_and_the_baseline_stays_one_config(sweep: Build) -> None:
    grid = {"max_num_batched_tokens": [512, 1024, 2048], "max_model_len": [4096]}
    configs = by_engine(sweep(engines=[VLLM, BASELINE], configs={"grid": grid}))
    assert len(configs["vllm"]) == 3
    (baseline,) = configs["baseline"]
    assert baseline.flags == {"max_model_len": "4096"}
    assert resolve(sweep(engines=[VLLM, BASELINE], configs={"grid": grid})).evidence == "measured"


def test_a_budget_for_the_baseline_alone_is_refused_with_the_reason(sweep: Build) -> None:
    text = refusal(sweep(engines=[BASELINE], configs={"grid": {"max_num_batched_tokens": [512, 1024]}}))
    assert text == (
        "spec.configs.grid.max_num_batched_tokens: is no flag of engine baseline; "
        "it serves one request at a time; remove it, or add an engine of kind vllm"
    )
    text = refusal(sweep(engines=[VLLM, {**BASELINE, "args": {"max_num_seqs": 8}}], configs=None))
    assert text.startswith("spec.engines[1].args.max_num_seqs: is no flag of engine baseline; it serves one request")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"dtype": "int4"}, "is no dtype of the Transformers baseline; write one of auto, bfloat16"),
        (
            {"device": "tpu"},
            'device: "tpu": is no device of the Transformers baseline; write auto, cpu, cuda or cuda:1',
        ),
        ({"dtyp": "float32"}, "is no flag of engine baseline; did you mean dtype?"),
        ({"revision": "main"}, "is not for a sweep to set; set spec.model.revision"),
        ({"attention_backend": "x"}, "is no flag of engine baseline; it has attn_implementation"),
    ],
)
def test_other_flags_are_refused_with_what_to_write(args: dict[str, Any], message: str, sweep: Build) -> None:
    assert message in refusal(sweep(engines=[{**BASELINE, "args": args}], configs=None))


def test_its_own_flags_can_be_swept(sweep: Build) -> None:
    grid = {"dtype": ["float32", "bfloat16"], "attn_implementation": ["sdpa", "eager"]}
    assert len(by_engine(sweep(engines=[BASELINE], configs={"grid": grid}))["baseline"]) == 4


def test_the_command_line(sweep: Build) -> None:
    engine = {**BASELINE, "args": {"dtype": "float32", "device": "cpu", "trust_remote_code": "true"}}
    model = {"name": "org/model", "servedName": "m", "revision": "v1"}
    ((config,),) = by_engine(sweep(engines=[engine], configs=None, model=model)).values()
    assert " ".join(config.command) == (
        "goodput-engine-transformers org/model --served-model-name m --revision v1 --port 8000 --shutdown-timeout 20 "
        "--device cpu --dtype float32 --trust-remote-code"
    )


@pytest.mark.parametrize(
    ("parts", "gpus"),
    [
        ({}, 1),
        ({"args": {"device": "cuda"}}, 1),
        ({"args": {"device": "cuda:1"}}, 1),
        ({"args": {"device": "cpu"}}, 0),
        ({"resources": {"limits": {"nvidia.com/gpu": 0}}}, 0),
    ],
)
def test_it_uses_one_gpu_or_none(parts: dict[str, Any], gpus: int, sweep: Build) -> None:
    ((config,),) = by_engine(sweep(engines=[{**BASELINE, **parts}], configs=None)).values()
    assert config.gpus == gpus


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"compileCache": {"mode": "shared", "claimName": "c"}},
            'spec.engines[0].compileCache: "shared": the Transformers baseline compiles nothing; remove it',
        ),
        (
            {"resources": {"limits": {"nvidia.com/gpu": 2}}},
            (
                "spec.engines[0].resources.limits: 2: GPUs are more than the one that the Transformers baseline uses; "
                "ask for 1, or for 0"
            ),
        ),
    ],
)
def test_what_it_would_not_use_is_refused(parts: dict[str, Any], message: str, sweep: Build) -> None:
    assert refusal(sweep(engines=[{**BASELINE, **parts}], configs=None)) == message


def test_it_is_warmed_with_one_request_at_a_time(sweep: Build) -> None:
    work = {"promptTokens": [16], "outputTokens": [4], "concurrency": [1, 32], "window": {"requests": 64}}
    resolved = resolve(sweep(engines=[VLLM, BASELINE], configs=None, workload=work))
    warm = {config.engine: warmup_concurrency(config, resolved.loads) for config in resolved.configs}
    assert warm == {"vllm": 32, "baseline": 1}
