"""The resolved engine config: vLLM's defaults, names and refusals.

Sources: vLLM 0.32.0 `vllm/config/scheduler.py` (rules and messages), `EngineArgs.get_batch_defaults`
(defaults by device memory).
"""

from typing import Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

_GIB = 1 << 30


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class SchedulerConfig:
    """What the scheduler obeys. Building it raises pydantic's `ValidationError`, worded as vLLM words it."""

    max_num_batched_tokens: int = Field(ge=1)
    max_num_seqs: int = Field(ge=1)
    max_model_len: int = Field(ge=1)
    enable_chunked_prefill: bool = True
    long_prefill_token_threshold: int = Field(default=0, ge=0)
    long_prefill_token_threshold_adaptive: bool = False
    max_num_active_seqs: int | None = Field(default=None, ge=1)
    scheduler_reserve_full_isl: bool = True
    watermark: float = Field(default=0.0, ge=0.0, lt=1.0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        budget, seqs, length = self.max_num_batched_tokens, self.max_num_seqs, self.max_model_len
        if budget < length and not self.enable_chunked_prefill:
            raise ValueError(
                f"max_num_batched_tokens ({budget}) is smaller than max_model_len ({length}). "
                "This effectively limits the maximum sequence length to max_num_batched_tokens and makes "
                "vLLM reject longer sequences. Please increase max_num_batched_tokens or decrease "
                "max_model_len."
            )
        if budget < seqs:
            raise ValueError(
                f"max_num_batched_tokens ({budget}) must be greater than or equal to max_num_seqs ({seqs})."
            )
        if self.max_num_active_seqs is not None and self.max_num_active_seqs > seqs:
            raise ValueError(
                f"max_num_active_seqs ({self.max_num_active_seqs}) cannot be greater than max_num_seqs ({seqs})."
            )
        if self.long_prefill_token_threshold > length:
            raise ValueError(
                f"long_prefill_token_threshold ({self.long_prefill_token_threshold}) cannot be greater than "
                f"the max_model_len ({length})."
            )
        return self

    @property
    def max_active(self) -> int:
        """Requests that may run at once."""
        return self.max_num_seqs if self.max_num_active_seqs is None else self.max_num_active_seqs


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class CacheConfig:
    """KV-cache blocks. One of `num_gpu_blocks` is kept aside as vLLM's null block."""

    block_size: int = Field(ge=1)
    num_gpu_blocks: int = Field(ge=2)
    enable_prefix_caching: bool = True
    gpu_memory_utilization: float = Field(default=0.92, gt=0.0, le=1.0)
    num_gpu_blocks_override: int | None = None
    kv_cache_memory_bytes: int | None = None

    @property
    def num_usable_blocks(self) -> int:
        """Blocks that requests can hold."""
        return self.num_gpu_blocks - 1

    @property
    def size_tokens(self) -> int:
        """Tokens that fit, as vLLM logs it (null block included)."""
        return self.num_gpu_blocks * self.block_size


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class EngineConfig:
    """Everything that decides what the engine does, besides its profile."""

    model: str
    served_model_name: str
    scheduler: SchedulerConfig
    cache: CacheConfig
    vocab_size: int
    seed: int = 0


def batch_defaults(memory_bytes: int, device: str) -> tuple[int, int]:
    """(max_num_batched_tokens, max_num_seqs) that vLLM's API server takes for a device."""
    if memory_bytes >= 160 * _GIB:
        return 16384, 1024
    if memory_bytes >= 70 * _GIB and "a100" not in device.lower():
        return 8192, 1024
    return 2048, 256


def resolve_batch(
    *,
    max_num_batched_tokens: int | None,
    max_num_seqs: int | None,
    max_model_len: int,
    enable_chunked_prefill: bool,
    defaults: tuple[int, int],
) -> tuple[int, int]:
    """Fills in the budget and the number of sequences where they were not asked for, as vLLM does."""
    budget, seqs = max_num_batched_tokens, max_num_seqs
    if budget is None:
        budget = defaults[0] if enable_chunked_prefill else max(max_model_len, defaults[0])
        budget = min((defaults[1] if seqs is None else seqs) * max_model_len, budget)
    if seqs is None:
        seqs = min(defaults[1], budget)
    return budget, seqs
