"""The command line, in vLLM's spelling, and the resolved config that follows from it."""

import argparse
from collections.abc import Sequence

from goodput.engines.api.arguments import base_parser, human_int
from goodput.engines.api.arguments import parse as parse_with
from goodput.engines.errors import KvCacheTooSmallError
from goodput.engines.simulated.config import (
    CacheConfig,
    EngineConfig,
    SchedulerConfig,
    batch_defaults,
    resolve_batch,
)
from goodput.engines.simulated.profile import Profile, profile_names
from goodput.engines.simulated.tokens import DEFAULT_VOCAB_SIZE, MIN_VOCAB_SIZE


def parser() -> argparse.ArgumentParser:
    """All flags. Flags of vLLM that the simulator does not model are unknown here, on purpose."""
    root = base_parser("goodput-engine-simulated", "name of the model that is made believe")
    flag = root.add_argument
    flag("--max-num-batched-tokens", type=human_int)
    flag("--max-num-seqs", type=int)
    flag("--max-num-active-seqs", type=int)
    flag("--long-prefill-token-threshold", type=int, default=0)
    flag("--watermark", type=float, default=0.0)
    flag("--block-size", type=int, default=16)
    flag("--num-gpu-blocks-override", type=int)
    flag("--gpu-memory-utilization", type=float, default=0.92)
    flag("--kv-cache-memory-bytes", type=human_int)
    for name, default in (
        ("enable-prefix-caching", True),
        ("enable-chunked-prefill", True),
        ("scheduler-reserve-full-isl", True),
        ("long-prefill-token-threshold-adaptive", False),
    ):
        flag(f"--{name}", action=argparse.BooleanOptionalAction, default=default)
    own = root.add_argument_group("simulator only")
    own.add_argument("--profile", default="teaching", help=f"{', '.join(profile_names())}, or a YAML file")
    own.add_argument("--start-seconds", type=float, default=0.0, help="time before it listens")
    own.add_argument("--vocab-size", type=int, default=DEFAULT_VOCAB_SIZE)
    return root


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; `--some_flag` means `--some-flag`, as for vLLM. Exits with 2 on an error."""
    root = parser()
    namespace = parse_with(root, arguments)
    if namespace.vocab_size < MIN_VOCAB_SIZE:
        root.error(f"argument --vocab-size: must be at least {MIN_VOCAB_SIZE}")
    if namespace.block_size < 1:
        root.error("argument --block-size: must be at least 1")
    return namespace


def resolve(namespace: argparse.Namespace, profile: Profile) -> EngineConfig:
    """Fills in defaults as vLLM does and checks.

    Raises:
        pydantic.ValidationError: a rule of vLLM's config is broken.
        KvCacheTooSmallError: one request of the maximum length does not fit.
    """
    max_model_len = namespace.max_model_len or profile.max_model_len
    budget, seqs = resolve_batch(
        max_num_batched_tokens=namespace.max_num_batched_tokens,
        max_num_seqs=namespace.max_num_seqs,
        max_model_len=max_model_len,
        enable_chunked_prefill=namespace.enable_chunked_prefill,
        defaults=batch_defaults(profile.memory.total_bytes, profile.device),
    )
    scheduler = SchedulerConfig(
        max_num_batched_tokens=budget,
        max_num_seqs=seqs,
        max_model_len=max_model_len,
        enable_chunked_prefill=namespace.enable_chunked_prefill,
        long_prefill_token_threshold=namespace.long_prefill_token_threshold,
        long_prefill_token_threshold_adaptive=namespace.long_prefill_token_threshold_adaptive,
        max_num_active_seqs=namespace.max_num_active_seqs,
        scheduler_reserve_full_isl=namespace.scheduler_reserve_full_isl,
        watermark=namespace.watermark,
    )
    names = namespace.served_model_name or [namespace.model]
    return EngineConfig(
        model=namespace.model,
        served_model_name=names[0],
        scheduler=scheduler,
        cache=_cache(namespace, profile, scheduler),
        vocab_size=namespace.vocab_size,
        seed=namespace.seed,
    )


def _cache(namespace: argparse.Namespace, profile: Profile, scheduler: SchedulerConfig) -> CacheConfig:
    memory, size = profile.memory, namespace.block_size
    available = namespace.kv_cache_memory_bytes
    if available is None:
        available = memory.kv_bytes(namespace.gpu_memory_utilization, scheduler.max_num_batched_tokens)
    blocks = namespace.num_gpu_blocks_override
    if blocks is None:
        blocks = available // (size * memory.kv_bytes_per_token)
    if (blocks - 1) * size < scheduler.max_model_len:
        needed = scheduler.max_model_len * memory.kv_bytes_per_token / (1 << 30)
        has = max(0, blocks * size) * memory.kv_bytes_per_token / (1 << 30)
        raise KvCacheTooSmallError(
            f"To serve at least one request with the model's max seq len ({scheduler.max_model_len}), "
            f"({needed:.2f} GiB KV cache is needed, which is larger than the available KV cache memory "
            f"({has:.2f} GiB). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when "
            "initializing the engine."
        )
    return CacheConfig(
        block_size=size,
        num_gpu_blocks=blocks,
        enable_prefix_caching=namespace.enable_prefix_caching,
        gpu_memory_utilization=namespace.gpu_memory_utilization,
        num_gpu_blocks_override=namespace.num_gpu_blocks_override,
        kv_cache_memory_bytes=namespace.kv_cache_memory_bytes,
    )
