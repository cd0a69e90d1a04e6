"""What a vLLM server would refuse at its start, refused before any server starts.

Source of the rules: vLLM 0.32.0 ``vllm/config/{scheduler,cache}.py``; they are the same for the simulated engine.
Only what the spec says is judged: where a flag is left to vLLM's default, vLLM fits it to the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from goodput.analysis.schema.planned import Config, Load
from goodput.operator.spec.configproblem import number, problem
from goodput.operator.spec.errors import MISSING, Problem
from goodput.operator.spec.gpus import explicit_gpus, needed_gpus
from goodput.operator.spec.models import EngineSpec, SweepSpec
from goodput.operator.spec.speculation import backend_problems, speculation_problems
from goodput.runner.fits import longest_request


def server_problems(spec: SweepSpec, configs: tuple[Config, ...], loads: Sequence[Load]) -> Iterator[Problem]:
    """Refusals of single configs; the first of each kind, as a grid would repeat it."""
    engines = {engine.name: (number, engine) for number, engine in enumerate(spec.engines)}
    seen: set[tuple[str, str]] = set()
    for config in configs:
        place, engine = engines[config.engine]
        for found in (
            *_flags(config),
            *_lengths(config, loads),
            *_gpus(config, engine, place),
            *_baseline(engine, place),
            *_device(config),
        ):
            if (found.field, found.message) not in seen:
                seen.add((found.field, found.message))
                yield found


def server_warnings(configs: tuple[Config, ...]) -> tuple[str, ...]:
    """What vLLM only warns of at its start; the first of each kind, as a grid would repeat it."""
    found: dict[str, str] = {}
    for config in configs:
        budget, seqs = number(config, "max_num_batched_tokens"), number(config, "max_num_seqs")
        length = number(config, "max_model_len")
        if budget is not None and seqs is not None and length is not None and 0 < seqs * length < budget:
            text = f"{config.label}: max_num_batched_tokens ({budget}) is above max_num_seqs x max_model_len"
            found.setdefault("budget", f"{text} ({seqs * length}): no step can fill it")
    return tuple(found.values())


def _flags(config: Config) -> Iterator[Problem]:
    yield from _scheduler(config)
    yield from speculation_problems(config)
    yield from backend_problems(config)


def gpu_count_problems(spec: SweepSpec) -> Iterator[Problem]:
    """GPU counts that are no whole numbers."""
    for place, engine in enumerate(spec.engines):
        try:
            explicit_gpus(engine)
        except ValueError:
            field = f"spec.engines[{place}].resources"
            yield Problem(field, MISSING, "a GPU count must be a whole number", "write nvidia.com/gpu: 1")


def _scheduler(config: Config) -> Iterator[Problem]:
    budget, seqs = number(config, "max_num_batched_tokens"), number(config, "max_num_seqs")
    length = number(config, "max_model_len")
    active, long_prefill = (
        number(config, "max_num_active_seqs"),
        number(config, "long_prefill_token_threshold"),
    )
    share = config.flags.get("gpu_memory_utilization")
    if share is not None and not 0 < float(share) <= 1:
        yield problem(config, "gpu_memory_utilization", "must be above 0 and at most 1", 'write a share such as "0.9"')
    for flag, value in (("max_num_batched_tokens", budget), ("max_num_seqs", seqs)):
        if value is not None and value < 1:
            yield problem(config, flag, "must be at least 1", "write a larger value")
    if budget is not None and seqs is not None and budget < seqs:
        yield problem(
            config,
            "max_num_batched_tokens",
            f"must be at least max_num_seqs ({seqs})",
            "raise it or lower max_num_seqs",
        )
    unchunked = config.flags.get("enable_chunked_prefill") == "false"
    if unchunked and budget is not None and length is not None and budget < length:
        yield problem(
            config,
            "max_num_batched_tokens",
            f"must be at least max_model_len ({length}) without chunked prefill",
            "raise it, lower max_model_len, or leave enable_chunked_prefill on",
        )
    if long_prefill is not None and length is not None and long_prefill > length:
        yield problem(
            config,
            "long_prefill_token_threshold",
            f"must not be above max_model_len ({length})",
            "lower it",
        )
    if active is not None and seqs is not None and active > seqs:
        yield problem(config, "max_num_active_seqs", f"must not be above max_num_seqs ({seqs})", "lower it")


def _lengths(config: Config, loads: Sequence[Load]) -> Iterator[Problem]:
    length = number(config, "max_model_len")
    if length is not None and length >= 0:
        yield from too_long(config, loads, length, f"max_model_len ({length})")


def too_long(config: Config, loads: Sequence[Load], max_model_len: int, words: str) -> Iterator[Problem]:
    """The longest requests that do not fit a config; ``words`` name its limit."""
    load = max(loads, key=longest_request)
    longest = longest_request(load)
    if longest > max_model_len:
        shorter = "shorten the requests" if load.max_tokens is None else f"lower maxTokens to {max_model_len}"
        yield Problem(
            "spec.workload",
            f"{longest} tokens",
            f"prompt and output of load {load.lengths} do not fit {words} of config {config.label}",
            f"set its max_model_len to {longest}, or {shorter}",
        )


def _baseline(engine: EngineSpec, place: int) -> Iterator[Problem]:
    """What an engine of kind transformers would not use."""
    if engine.kind != "transformers":
        return
    mode, asked = engine.compile_cache.mode, explicit_gpus(engine)
    if mode != "none":
        yield Problem(
            f"spec.engines[{place}].compileCache", mode, "the Transformers baseline compiles nothing", "remove it"
        )
    if asked is not None and asked > 1:
        field = f"spec.engines[{place}].resources.limits"
        yield Problem(
            field, asked, "GPUs are more than the one that the Transformers baseline uses", "ask for 1, or for 0"
        )


def _device(config: Config) -> Iterator[Problem]:
    """The one flag of the baseline that names hardware."""
    device = config.flags.get("device", "auto")
    if config.kind == "transformers" and not re.fullmatch(r"auto|cpu|cuda(:[0-9]+)?", device):
        yield problem(config, "device", "is no device of the Transformers baseline", "write auto, cpu, cuda or cuda:1")


def _gpus(config: Config, engine: EngineSpec, place: int) -> Iterator[Problem]:
    asked, needed = explicit_gpus(engine), needed_gpus(config.flags)
    if engine.kind == "vllm" and asked and asked != needed:
        yield Problem(
            f"spec.engines[{place}].resources.limits",
            asked,
            f"GPUs do not match tensor x pipeline x data parallel size ({needed}) of {config.label}",
            f"ask for {needed}, or leave the count out",
        )
