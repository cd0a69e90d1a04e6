"""The server's config as the server resolved it (``/server_info``), and where it differs from what was asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from goodput.analysis import ids

#: Sections whose simple values are kept; of the large ones the fields that shape a measurement.
_SECTIONS: dict[str, frozenset[str] | None] = {
    "scheduler_config": None,
    "cache_config": frozenset(
        {
            *("block_size", "cache_dtype", "enable_prefix_caching", "gpu_memory_utilization", "kv_cache_memory_bytes"),
            *("kv_cache_size_tokens", "num_gpu_blocks", "num_gpu_blocks_override"),
        }
    ),
    "device_config": frozenset({"device"}),
    "model_config": frozenset(
        {
            *("attn_implementation", "dtype", "enforce_eager", "max_model_len", "quantization", "revision", "seed"),
        }
    ),
    "parallel_config": frozenset(
        {
            *("data_parallel_size", "decode_context_parallel_size", "enable_expert_parallel"),
            *("pipeline_parallel_size", "tensor_parallel_size"),
        }
    ),
}
#: Flags whose config field has another name.
_FIELD_OF_FLAG = {
    "attention_config.backend": "attention_backend",
    "kv_cache_dtype": "cache_dtype",
    "scheduling_policy": "policy",
}
_OPEN = frozenset({"auto", "none", "", "-1"})
_SAME = {"half": "float16", "float": "float32"}
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def resolved_config(info: Mapping[str, Any] | None) -> dict[str, str]:
    """Field → value as text. Empty where the server does not say; fields that are unset are left out."""
    config = (info or {}).get("vllm_config")
    if not isinstance(config, Mapping):
        return {}
    found: dict[str, str] = {}
    for section, wanted in _SECTIONS.items():
        fields = config.get(section)
        if isinstance(fields, Mapping):
            for name, value in fields.items():
                if isinstance(value, str | int | float) and (wanted is None or name in wanted):
                    found[name] = ids.text(value)
    return dict(sorted(found.items()))


def mismatches(expects: Mapping[str, str], resolved: Mapping[str, str]) -> list[str]:
    """What was asked and resolved to something else, as sentences. Fields that the server hides do not count."""
    differing: list[str] = []
    for flag, asked in sorted(expects.items()):
        value = resolved.get(_FIELD_OF_FLAG.get(flag, flag))
        if value is not None and not _equal(asked, value):
            differing.append(f"{flag} was asked to be {asked} and is {value}")
    return differing


def _equal(asked: str, value: str) -> bool:
    asked, value = asked.strip(), value.strip().lower().removeprefix("torch.")
    if asked.lower() in _OPEN:
        return True
    number, resolved = _number(asked), _number(value)
    if number is not None and resolved is not None:
        return number == resolved
    asked = _SAME.get(asked.lower(), asked.lower())
    # A family's name resolves to a member: fp8 to fp8_e4m3.
    return asked == value or value.startswith(f"{asked}_")


def _number(text: str) -> float | None:
    """A number, also as vLLM's flags write large ones: 8k is 8000, 8K is 8192."""
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)([kmgKMG]?)", text)
    return float(match[1]) * _UNITS[match[2]] if match else None
