"""The server's config as the server resolved it (``/server_info``), and where it differs from what was asked."""

from __future__ import annotations

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
    "model_config": frozenset({"dtype", "enforce_eager", "max_model_len", "quantization", "revision", "seed"}),
    "parallel_config": frozenset(
        {
            *("data_parallel_size", "decode_context_parallel_size", "enable_expert_parallel"),
            *("pipeline_parallel_size", "tensor_parallel_size"),
        }
    ),
}
#: Flags whose config field has another name.
_FIELD_OF_FLAG = {"kv_cache_dtype": "cache_dtype", "scheduling_policy": "policy"}
_OPEN = frozenset({"auto", "none", ""})


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


def hidden(expects: Mapping[str, str], resolved: Mapping[str, str]) -> list[str]:
    """Flags whose resolved value the server does not show."""
    return sorted(flag for flag in expects if _FIELD_OF_FLAG.get(flag, flag) not in resolved)


def _equal(asked: str, value: str) -> bool:
    asked, value = asked.strip().lower(), value.strip().lower().removeprefix("torch.")
    if asked in _OPEN or asked == value:
        return True
    try:
        return float(asked) == float(value)
    except ValueError:
        return False
