"""Which configs share what vLLM compiles, and which starts fill the cache before anything is measured.

Source: vLLM 0.32.0 ``compute_hash`` of its config classes: max_num_batched_tokens and max_num_seqs are part of the
key, as are model, parallel sizes, dtype, quantization, attention backend and the version. A flag that is not listed
here counts as part of it: that costs a start too many, never a measured start that compiles.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from goodput.analysis.schema.planned import Config
from goodput.operator.spec.models import EngineSpec, SweepSpec

#: Flags that do not change what is compiled.
UNHASHED: Final = frozenset(
    {
        *("async_scheduling", "enable_chunked_prefill", "enable_prefix_caching", "gpu_memory_utilization"),
        *("long_prefill_token_threshold", "long_prefill_token_threshold_adaptive", "max_num_active_seqs"),
        *("max_num_queued_reqs", "max_num_queued_tokens", "num_gpu_blocks_override", "prefill_schedule_interval"),
        *("scheduler_reserve_full_isl", "scheduling_policy", "seed", "stream_interval", "watermark"),
    }
)
_COMPILING: Final = frozenset({"vllm", "simulated"})  # the simulated engine compiles nothing, but starts like one


def compile_key(config: Config) -> tuple[str, ...]:
    """Equal for configs whose servers compile the same. The engine stands for image, environment and hardware."""
    flags = (f"{flag}={value}" for flag, value in sorted(config.flags.items()) if flag not in UNHASHED)
    return (config.engine, *flags)


def primes(spec: SweepSpec, configs: Iterable[Config]) -> tuple[str, ...]:
    """Config ids that are started once, unmeasured, before the first block: the first one of each compile key."""
    engines: dict[str, EngineSpec] = {engine.name: engine for engine in spec.engines}
    found: dict[tuple[str, ...], str] = {}
    for config in configs:
        engine = engines[config.engine]
        compiles = engine.kind in _COMPILING and config.flags.get("enforce_eager") != "true"
        if engine.compile_cache.mode == "prime" and compiles:
            found.setdefault(compile_key(config), config.id)
    return tuple(found.values())
