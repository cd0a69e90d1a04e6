"""GPUs of a config: tensor × pipeline × data parallel size."""

from __future__ import annotations

import re
from collections.abc import Mapping

from goodput.operator.spec.models import EngineSpec

#: Resource that is asked for where the spec names none.
GPU_RESOURCE = "nvidia.com/gpu"
#: Whole GPUs of any vendor, and NVIDIA's MIG slices.
_GPU = re.compile(r"(.+/gpu|nvidia\.com/mig-.+|gpu\.intel\.com/(i915|xe))$")
_SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


def is_gpu(resource: str) -> bool:
    """The resource counts GPUs."""
    return bool(_GPU.fullmatch(resource))


def explicit_gpus(engine: EngineSpec) -> int | None:
    """GPUs that the engine's resources ask for; None where they ask for none at all.

    Raises:
        ValueError: the count is not a whole number.
    """
    asked = {**engine.resources.requests, **engine.resources.limits}
    counts = [int(quantity) for resource, quantity in asked.items() if is_gpu(resource)]
    return sum(counts) if counts else None


def needed_gpus(flags: Mapping[str, str]) -> int:
    """GPUs that a vLLM server with these flags uses."""
    product = 1
    for size in _SIZES:
        product *= int(flags.get(size, "1"))
    return product


def gpus_of(engine: EngineSpec, flags: Mapping[str, str]) -> int:
    """GPUs of one config: 0 for simulated and external engines and for a server on CPU (0 asked for, or device cpu)."""
    if engine.kind in ("simulated", "external") or explicit_gpus(engine) == 0:
        return 0
    if engine.kind == "transformers":
        return 0 if flags.get("device") == "cpu" else 1
    return needed_gpus(flags)
