"""Which axes can change what a model answers, so that the answers are compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from goodput.analysis.schema.planned import Config
from goodput.operator.spec.models import SweepSpec

#: Numerics, weights or sampling differ. Budgets and batch sizes only change the order of additions.
OUTPUT_FLAGS: Final = frozenset(
    {
        *("attention_backend", "attention_config", "dtype", "hf_overrides", "kv_cache_dtype", "model_impl"),
        *("data_parallel_size", "decode_context_parallel_size", "pipeline_parallel_size", "tensor_parallel_size"),
        *("linear_backend", "moe_backend", "quantization", "quantization_config", "seed"),
        *("spec_method", "spec_model", "spec_tokens", "speculative_config"),
    }
)


def checks_outputs(spec: SweepSpec, configs: Iterable[Config]) -> bool:
    """Whether every config is asked the prompts of the output check."""
    if spec.plan.output_check != "auto":
        return spec.plan.output_check == "on"
    if spec.engines[0].kind == "simulated":
        return False  # its tokens are made up
    started = [engine.name for engine in spec.engines if engine.kind != "external"]
    swept = {flag.partition(".")[0] for config in configs for flag in config.swept}
    return len(started) > 1 or bool(swept & OUTPUT_FLAGS)
