"""What a vLLM server would refuse at its start, refused before any server starts.

Source of the rules: vLLM 0.32.0 `vllm/config/scheduler.py`; they are the same for the simulated engine.
Only what the spec says is judged: where a flag is left to vLLM's default, vLLM fits it to the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from goodput.analysis.schema import Config
from goodput.operator.spec.errors import MISSING, Problem
from goodput.operator.spec.gpus import explicit_gpus, needed_gpus
from goodput.operator.spec.loads import longest_request
from goodput.operator.spec.models import EngineSpec, SweepSpec


def server_problems(spec: SweepSpec, configs: tuple[Config, ...]) -> Iterator[Problem]:
    """Refusals of single configs; the first of each kind, as a grid would repeat it."""
    engines = {engine.name: (number, engine) for number, engine in enumerate(spec.engines)}
    seen: set[tuple[str, str]] = set()
    for config in configs:
        number, engine = engines[config.engine]
        for problem in (*_scheduler(config), *_lengths(config, spec), *_gpus(config, engine, number)):
            if (problem.field, problem.message) not in seen:
                seen.add((problem.field, problem.message))
                yield problem


def gpu_count_problems(spec: SweepSpec) -> Iterator[Problem]:
    """GPU counts that are no whole numbers."""
    for number, engine in enumerate(spec.engines):
        try:
            explicit_gpus(engine)
        except ValueError:
            field = f"spec.engines[{number}].resources"
            yield Problem(field, MISSING, "a GPU count must be a whole number", "write nvidia.com/gpu: 1")


def _scheduler(config: Config) -> Iterator[Problem]:
    budget, seqs = _number(config, "max_num_batched_tokens"), _number(config, "max_num_seqs")
    length = _number(config, "max_model_len")
    active, long_prefill = (
        _number(config, "max_num_active_seqs"),
        _number(config, "long_prefill_token_threshold"),
    )
    for flag, value in (("max_num_batched_tokens", budget), ("max_num_seqs", seqs)):
        if value is not None and value < 1:
            yield _problem(config, flag, "must be at least 1", "write a larger value")
    if budget is not None and seqs is not None and budget < seqs:
        yield _problem(
            config,
            "max_num_batched_tokens",
            f"must be at least max_num_seqs ({seqs})",
            "raise it or lower max_num_seqs",
        )
    unchunked = config.flags.get("enable_chunked_prefill") == "false"
    if unchunked and budget is not None and length is not None and budget < length:
        yield _problem(
            config,
            "max_num_batched_tokens",
            f"must be at least max_model_len ({length}) without chunked prefill",
            "raise it, lower max_model_len, or leave enable_chunked_prefill on",
        )
    if long_prefill is not None and length is not None and long_prefill > length:
        yield _problem(
            config,
            "long_prefill_token_threshold",
            f"must not be above max_model_len ({length})",
            "lower it",
        )
    if active is not None and seqs is not None and active > seqs:
        yield _problem(config, "max_num_active_seqs", f"must not be above max_num_seqs ({seqs})", "lower it")


def _lengths(config: Config, spec: SweepSpec) -> Iterator[Problem]:
    length = _number(config, "max_model_len")
    _, longest = longest_request(spec.workload)
    if length is not None and 0 <= length < longest:
        yield Problem(
            "spec.workload",
            f"{longest} tokens",
            f"prompt and output do not fit max_model_len ({length}) of {config.label}",
            f"raise max_model_len to {longest} or shorten the requests",
        )


def _gpus(config: Config, engine: EngineSpec, number: int) -> Iterator[Problem]:
    asked, needed = explicit_gpus(engine), needed_gpus(config.flags)
    if engine.kind == "vllm" and asked and asked != needed:
        yield Problem(
            f"spec.engines[{number}].resources.limits",
            asked,
            f"GPUs do not match tensor x pipeline x data parallel size ({needed}) of {config.label}",
            f"ask for {needed}, or leave the count out",
        )


def _problem(config: Config, flag: str, message: str, fix: str) -> Problem:
    where = "spec.configs" if flag in config.swept else f"engine {config.engine}"
    return Problem(f"{where}: {flag}", config.flags[flag], message, fix)


def _number(config: Config, flag: str) -> int | None:
    text = config.flags.get(flag)
    return int(text) if text not in (None, "auto") else None
