"""From a vLLM server's log to what it says of its start. Pure; both drivers use it when the server is ready.

Texts: vLLM 0.11.2, 0.19.1 and 0.32.0 (``v1/engine/core.py``, ``v1/core/kv_cache_utils.py``, ``v1/worker/``,
``compilation/``, ``model_executor/model_loader/``, ``platforms/cuda.py``); those of the CPU backend are from captured
logs (tests/data/vllm_logs). With tensor or pipeline parallelism every worker writes a line: the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from goodput.analysis.schema.provenance import CompileCache, StartLog

_CONFIG: Final = re.compile(r"Initializing a V1 LLM engine \(v(?P<version>[^)]+)\) with config: (?P<config>.*)")
_PAIR: Final = re.compile(r"(?<![\w.])(\w+)=('[^']*'|[\w.+-]+)(?=,|$)")
_KEPT: Final = frozenset(
    {
        *("data_parallel_size", "dtype", "enable_chunked_prefill", "enable_prefix_caching", "enforce_eager"),
        *("kv_cache_dtype", "load_format", "max_seq_len", "model", "pipeline_parallel_size", "quantization"),
        *("revision", "seed", "speculative_config", "tensor_parallel_size"),
    }
)
_SNAPSHOT: Final = re.compile(r"/snapshots/([0-9a-f]{40})\b")
_PREEMPTED: Final = re.compile(r"is preempted by")
"""As V0 wrote it. V1 only counts preemptions, in ``vllm:num_preemptions_total``."""
_MISS: Final = re.compile(
    r"saved AOT compiled function|Compiling a graph for|Cache the graph (of|for)|Compiling model again due to"
    r"|(AOTAutograd|fx graph) cache miss for key"
)
_HIT: Final = re.compile(
    r"Directly load (AOT compilation|the compiled graph|the \S+ graph)|(AOTAutograd|fx graph) cache hit for key"
)
"""The lines about keys are torch's own, where TORCH_LOGS asks for them."""
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")  # VLLM_LOGGING_COLOR
_EAGER: Final = re.compile(r"Enforce eager set|\benforce_eager=True\b")


def _integer(text: str) -> int:
    return int(text.replace(",", ""))


def _backend(text: str) -> str:
    """``FLASH_ATTN`` also where it is written ``AttentionBackendEnum.FLASH_ATTN``."""
    return text.rpartition(".")[2].upper()


_FIELDS: Final[tuple[tuple[str, str, Callable[[str], Any]], ...]] = (
    ("weights_seconds", r"Loading weights took (\d+(?:\.\d+)?) seconds", float),
    ("model_load_seconds", r"Model loading took \S+ GiB memory and (\d+(?:\.\d+)?) seconds", float),
    ("model_memory_gib", r"Model loading took (\d+(?:\.\d+)?) GiB memory", float),
    ("compile_seconds", r"torch\.compile (?:took|takes) (\d+(?:\.\d+)?) s in total", float),
    ("compile_seconds", r"init engine \([^()\n]*\) took \S+ s \(compilation: (\d+(?:\.\d+)?) s", float),
    ("graph_capture_seconds", r"Graph capturing finished in (\d+(?:\.\d+)?) secs", float),
    ("graph_capture_gib", r"Graph capturing finished in \S+ secs, took (\d+(?:\.\d+)?) GiB", float),
    ("init_engine_seconds", r"init engine \([^()\n]*\) took (\d+(?:\.\d+)?) s", float),
    ("kv_cache_memory_gib", r"Available KV cache memory: (\d+(?:\.\d+)?) GiB", float),
    ("kv_cache_tokens", r"KV cache size: (\d[\d,]{0,18}) tokens", _integer),
    ("max_concurrency", r"Maximum concurrency for [\d,]+ tokens per request: (\d+(?:\.\d+)?)x", float),
    ("kv_blocks", r"# (?:GPU|cuda|CUDA) blocks: (\d{1,18})\b", int),
    ("kv_blocks", r"with num_gpu_blocks_override=(\d{1,18})\b", int),
    ("cpu_blocks", r"# CPU blocks: (\d{1,18})\b", int),
    ("chunked_prefill_tokens", r"Chunked prefill is enabled with max_num_batched_tokens=(\d{1,18})\b", int),
    ("attention_backend", r"Using ([\w.]+) attention backend out of", _backend),
    ("attention_backend", r"\[cuda\.py:\d+\] Using ([\w.]+) backend\.", _backend),
)


def parse_log(text: str) -> StartLog | None:
    """What the log says; None where it is not a vLLM server's."""
    text = _COLOUR.sub("", text)
    config = _CONFIG.search(text)
    if config is None:
        return None
    found: dict[str, Any] = {}
    for field, pattern, convert in _FIELDS:
        matches = re.findall(pattern, text)
        if matches:
            found[field] = convert(matches[-1])
    snapshot = _SNAPSHOT.search(text)
    return StartLog(
        engine_version=config["version"],
        compile_cache=compile_cache(text),
        preemption_warnings=len(_PREEMPTED.findall(text)),
        model_snapshot=snapshot[1] if snapshot else None,
        resolved=_resolved(config["config"]),
        **found,
    )


def compile_cache(text: str) -> CompileCache | None:
    """Whether the server loaded what an earlier one compiled, as its log says it.

    One graph that had to be compiled is a miss. None: nothing is compiled, or it is no vLLM server's log.
    """
    if _EAGER.search(text) or _CONFIG.search(text) is None:
        return None
    if _MISS.search(text):
        return "miss"
    return "hit" if _HIT.search(text) else "unknown"


def _resolved(config: str) -> dict[str, str]:
    """The simple values of the line; nested ones are left out."""
    pairs = {key: value.strip("'") for key, value in _PAIR.findall(_outermost(config)) if key in _KEPT}
    return dict(sorted((key, value) for key, value in pairs.items() if value != "None"))


def _outermost(config: str) -> str:
    """The line without what is inside parentheses, braces and brackets."""
    kept: list[str] = []
    depth = 0
    for character in config:
        depth += character in "([{"
        if depth == 0:
            kept.append(character)
        depth -= character in ")]}"
    return "".join(kept)
