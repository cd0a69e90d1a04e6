"""What the server says about itself. Every document says that it is synthetic."""

import hashlib
import os
import platform
import sys
from typing import Any

from goodput.engines.simulated.config import EngineConfig
from goodput.engines.simulated.profile import Profile

#: The vLLM release whose behaviour is imitated, with a mark that it is an imitation.
VERSION = "0.32.0+simulated"
NOTICE = "SYNTHETIC: simulated engine, no model runs and no device is used. Do not mix with measurements."


def fingerprint(config: EngineConfig) -> str:
    """The `system_fingerprint` of answers: version and a hash of the config."""
    return f"vllm-{VERSION}-{hashlib.sha256(repr(config).encode()).hexdigest()[:8]}"


def cache_info(config: EngineConfig) -> dict[str, str]:
    """Labels of `vllm:cache_config_info`, all that vLLM 0.32.0 has."""
    return {key: str(value) for key, value in _cache_config(config).items()}


def server_info(config: EngineConfig, profile: Profile, *, as_text: bool) -> dict[str, Any]:
    """GET /server_info: the resolved config in vLLM's structure, and a `simulated` section."""
    document = _vllm_config(config)
    return {
        "vllm_config": str(document) if as_text else document,
        "vllm_env": {key: value for key, value in sorted(os.environ.items()) if key in _SHOWN_ENVIRONMENT},
        "system_env": {
            "os": platform.platform(),
            "python_version": sys.version,
            "vllm_version": VERSION,
            "torch_version": None,
            "is_cuda_available": "False",
            "nvidia_gpu_models": None,
            "nvidia_driver_version": None,
        },
        "simulated": {
            "synthetic": True,
            "notice": NOTICE,
            "profile": profile.name,
            "source": profile.source,
            "device": profile.device,
            "max_running": profile.max_running,
            "coefficients": profile.model_dump(mode="json"),
        },
    }


_SHOWN_ENVIRONMENT = ("VLLM_SERVER_DEV_MODE", "VLLM_NO_USAGE_STATS")


def _vllm_config(config: EngineConfig) -> dict[str, Any]:
    scheduler = config.scheduler
    return {
        "model_config": {
            "model": config.model,
            "served_model_name": config.served_model_name,
            "tokenizer": "goodput-toy",
            "dtype": None,
            "seed": config.seed,
            "max_model_len": scheduler.max_model_len,
            "revision": None,
            "quantization": None,
            "enforce_eager": True,
        },
        "cache_config": _cache_config(config),
        "parallel_config": {
            "tensor_parallel_size": 1,
            "pipeline_parallel_size": 1,
            "data_parallel_size": 1,
            "world_size": 1,
        },
        "scheduler_config": {
            "runner_type": "generate",
            "max_num_batched_tokens": scheduler.max_num_batched_tokens,
            "max_num_scheduled_tokens": None,
            "max_num_seqs": scheduler.max_num_seqs,
            "max_num_active_seqs": scheduler.max_num_active_seqs,
            "long_prefill_token_threshold": scheduler.long_prefill_token_threshold,
            "long_prefill_token_threshold_adaptive": scheduler.long_prefill_token_threshold_adaptive,
            "max_num_queued_reqs": None,
            "max_num_queued_tokens": None,
            "enable_chunked_prefill": scheduler.enable_chunked_prefill,
            "is_multimodal_model": False,
            "policy": "fcfs",
            "scheduler_cls": None,
            "scheduler_reserve_full_isl": scheduler.scheduler_reserve_full_isl,
            "watermark": scheduler.watermark,
            "prefill_schedule_interval": 1,
            "async_scheduling": False,
            "stream_interval": 1,
        },
        "device_config": {"device": "simulated"},
        "load_config": {"load_format": "simulated", "download_dir": None},
        "speculative_config": None,
    }


def _cache_config(config: EngineConfig) -> dict[str, Any]:
    cache = config.cache
    return {
        "block_size": cache.block_size,
        "user_specified_block_size": False,
        "kv_cache_layout": None,
        "prefix_match_unit": None,
        "gpu_memory_utilization": cache.gpu_memory_utilization,
        "cache_dtype": "auto",
        "is_attention_free": False,
        "num_gpu_blocks_override": cache.num_gpu_blocks_override,
        "sliding_window": None,
        "enable_prefix_caching": cache.enable_prefix_caching,
        "prefix_caching_hash_algo": "sha256",
        "prefix_cache_retention_interval": 0,
        "kv_cache_dtype_skip_layers": [],
        "mamba_page_size_padded": None,
        "skip_page_size_padded": None,
        "mamba_block_size": None,
        "mamba_cache_dtype": "auto",
        "mamba_ssm_cache_dtype": "float32",
        "mamba_cache_mode": "none",
        "enable_mamba_shared_prefix_checkpoint": False,
        "replayssm_buffer_len": 16,
        "use_replayssm": False,
        "use_kda_recoverssm": False,
        "num_gpu_blocks": cache.num_gpu_blocks,
        "num_cpu_blocks": None,
        "effective_attention_block_size": cache.block_size,
        "kv_cache_size_tokens": cache.size_tokens,
        "kv_cache_max_concurrency": round(cache.size_tokens / config.scheduler.max_model_len, 2),
        "hash_block_size": None,
        "cache_hit_alignment_tokens": None,
        "kv_sharing_fast_prefill": False,
        "swa_bounded_replay": True,
        "kv_cache_memory_bytes": cache.kv_cache_memory_bytes,
        "kv_offloading_size": None,
        "kv_offloading_backend": "native",
        "_block_size_resolved": True,
    }
