"""From a server's log to a reason. Pure; both drivers use it once a server has ended.

Texts: vLLM 0.32's ``SchedulerConfig``, ``kv_cache_utils`` and workers, argparse, torch and huggingface_hub; those
of the CPU backend are from captured logs (tests/data/vllm_logs). The root cause is logged before what follows
from it, so the order of the rules matters, not that of the lines.
"""

from __future__ import annotations

import re
from typing import Final

from goodput.operator.observed import Failure

MESSAGE_CHARACTERS: Final = 512

_PREFIX: Final = re.compile(
    r"^(\([A-Za-z0-9_-]+ pid=\d+\) )?((INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\] )?"
)
"""``(EngineCore pid=23) ERROR 11-30 02:16:04 [core.py:1510] `` in front of a message."""

RULES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (reason, re.compile(pattern, re.MULTILINE))
    for reason, pattern in (
        ("CudaOutOfMemory", r"torch\.(cuda\.)?OutOfMemoryError|CUDA out of memory|CUBLAS_STATUS_ALLOC_FAILED"),
        ("GpuMemoryBusy", r"Free memory on device .* on startup is less than (desired|the engine)"),
        ("KvCacheTooSmall", r"No available memory for the cache blocks"),
        ("KvCacheTooSmall", r"To serve at least one request with the model's max seq len"),
        ("KvCacheTooSmall", r"is larger than the maximum number of tokens that can be stored in KV cache"),
        ("HostOutOfMemory", r"Available memory on node \d+ .* is less than (desired|requested)"),
        ("HostOutOfMemory", r"std::bad_alloc|Cannot allocate memory|^MemoryError"),
        ("ContainerConfigError", r"Insufficient space in /dev/shm|No usable temporary directory"),
        ("InvalidServerArgs", r"^[\w./ -]+: error: .+"),
        ("InvalidServerArgs", r"validation errors? for \w*Config"),
        ("InvalidServerArgs", r"ValueError: Consider increasing max_num_batched_tokens or decreasing"),
        (
            "InvalidServerArgs",
            r"VllmConfig does not have enough slots|based on the speculative decoding settings, which",
        ),
        ("InvalidServerArgs", r"async scheduling is only supported with|does not support async scheduling yet"),
        ("InvalidServerArgs", r"attention_backend and attention_config.backend are mutually exclusive"),
        ("InvalidServerArgs", r"(Unknown|Invalid|No valid) attention backend|Unknown quantization method"),
        ("InvalidServerArgs", r"Chunked MM input disabled but max_tokens_per_mm_item"),
        ("InvalidServerArgs", r"must be divisible by tensor parallel size"),
        ("ModelUnavailable", r"is not a local folder and is not a valid model identifier|RepositoryNotFoundError"),
        ("ModelUnavailable", r"GatedRepoError|RevisionNotFoundError|does not appear to have a file named"),
        ("PortInUse", r"(?i:address already in use)|EADDRINUSE"),
        ("EngineDead", r"EngineDeadError|EngineCore encountered a fatal error|died unexpectedly"),
        ("EngineDead", r"ncclSystemError|ncclUnhandledCudaError|NCCL error|an illegal memory access|Xid \(PCI"),
        ("EngineDead", r"Engine core initialization failed|EngineCore failed to start"),
        ("EngineDead", r"generating failed, the server ends: "),  # of the Transformers baseline
    )
)


def classify_log(text: str) -> Failure | None:
    """Why a server ended, with the line that says so; None where its log does not tell."""
    for reason, pattern in RULES:
        found = pattern.search(text)
        if found is not None:
            return Failure(reason, _message(text, found, reason))
    return None


def last_line(text: str) -> str:
    """The last line that says something, without the log's prefix."""
    line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    return _PREFIX.sub("", line.strip())[:MESSAGE_CHARACTERS]


def _message(text: str, found: re.Match[str], reason: str) -> str:
    """The line of the match; a pydantic error has what matters in the lines below it."""
    start = text.rfind("\n", 0, found.start()) + 1
    lines = text[start:].splitlines()
    message = _PREFIX.sub("", lines[0]).strip()
    if reason == "InvalidServerArgs" and "validation error" in message:
        below = [_PREFIX.sub("", line).strip() for line in lines[1:3]]
        message = ": ".join([message, *filter(None, below)])
    return message[:MESSAGE_CHARACTERS]
