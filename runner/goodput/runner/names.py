"""Names of the server's metrics, newest first: one quantity, several spellings over engine versions.

Source: vLLM ``v1/metrics/loggers.py``; renamed in vllm#18354 (0.9), old names removed in vllm#29330 (0.12).
"""

from __future__ import annotations

SUMMED = {
    "running": ("vllm:num_requests_running",),
    "waiting": ("vllm:num_requests_waiting",),
    "preemptions": ("vllm:num_preemptions_total", "vllm:num_preemptions"),
    "prompt_tokens": ("vllm:prompt_tokens_total", "vllm:prompt_tokens"),
    "generation_tokens": ("vllm:generation_tokens_total", "vllm:generation_tokens"),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
}
HIGHEST = {
    "kv_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "start_time": ("process_start_time_seconds",),
}
FINISHED = ("vllm:request_success_total", "vllm:request_success")
CACHE_INFO = ("vllm:cache_config_info",)
COUNTERS = ("preemptions", "prompt_tokens", "generation_tokens", "prefix_queries", "prefix_hits")

ALL = frozenset(name for names in (*SUMMED.values(), *HIGHEST.values(), FINISHED, CACHE_INFO) for name in names)
