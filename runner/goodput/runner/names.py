"""Names of the server's metrics, newest first: one quantity, several spellings over engine versions.

Source: vLLM ``v1/metrics/loggers.py``; KV use and prefix cache were renamed in vllm#18354 (0.9) and the old names
removed in vllm#29330 (0.12); the inter-token histogram was renamed in vllm#24110 (0.11) and its old name removed
in vllm#32661 (0.13). Counters end in ``_total`` since prometheus_client 0.4; exporters that do not, are read too.
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
HISTOGRAMS = {
    "ttft": ("vllm:time_to_first_token_seconds",),
    "itl": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),  # per engine output, not token
    "tpot": ("vllm:request_time_per_output_token_seconds",),
    "e2e": ("vllm:e2e_request_latency_seconds",),
    "queue": ("vllm:request_queue_time_seconds",),
    "prefill": ("vllm:request_prefill_time_seconds",),
    "decode": ("vllm:request_decode_time_seconds",),
    "prompt_tokens": ("vllm:request_prompt_tokens",),
    "output_tokens": ("vllm:request_generation_tokens",),
}
COUNTERS = ("preemptions", "prompt_tokens", "generation_tokens", "prefix_queries", "prefix_hits")
GAUGES = ("kv_usage", "running", "waiting")

SCALARS = frozenset(name for names in (*SUMMED.values(), *HIGHEST.values(), FINISHED, CACHE_INFO) for name in names)
BUCKETS = frozenset(f"{name}_{part}" for names in HISTOGRAMS.values() for name in names for part in ("bucket", "sum"))
