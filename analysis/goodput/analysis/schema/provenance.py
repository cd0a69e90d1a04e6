"""What was measured on what, and how its server started."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from goodput.analysis.schema.base import Document


class DatasetFacts(Document):
    """The file that a workload comes from. Rows that cannot be sent (no prompt, no answer) are ``unusable_rows``."""

    uri: str
    sha256: str
    rows: int
    unusable_rows: int


class GpuFacts(Document):
    """One GPU of a server."""

    uuid: str | None = None
    name: str | None = None
    memory_gib: float | None = None
    driver: str | None = None


class Provenance(Document):
    """What was measured on what. Whatever could not be learnt is None."""

    engine_version: str | None = None
    engine_commit: str | None = None
    model: str | None = None
    model_revision: str | None = None  # commit of the snapshot where it is known, else what was asked for
    model_content: str | None = None  # of a local folder: hash over config, weights index, safetensors headers, sizes
    image: str | None = None
    image_digest: str | None = None
    torch: str | None = None
    cuda: str | None = None
    driver: str | None = None
    gpu: str | None = None
    gpu_uuid: str | None = None
    gpu_memory_gib: float | None = None  # of the smallest of its GPUs
    node: str | None = None
    url: str | None = None  # of an external server, which holds no user and no password
    resolved: dict[str, str] = Field(default_factory=dict)  # scheduler config as the server resolved it
    goodput_version: str | None = None
    simulated: str | None = None  # a simulation in virtual time: whose step times, and where they come from
    dataset: DatasetFacts | None = None


CompileCache = Literal["hit", "miss", "unknown"]
"""``unknown``: the server compiles and its log says neither. None in a document: nothing is compiled."""


class StartLog(Document):
    """What a vLLM server's log says of its start, and nothing that it does not say. Sizes in tokens or GiB."""

    engine_version: str | None = None
    weights_seconds: float | None = None
    model_load_seconds: float | None = None  # weights included
    model_memory_gib: float | None = None
    compile_cache: CompileCache | None = None
    compile_seconds: float | None = None
    graph_capture_seconds: float | None = None
    graph_capture_gib: float | None = None
    init_engine_seconds: float | None = None  # profile, KV cache, warm-up; compilation and capture included
    kv_cache_memory_gib: float | None = None
    kv_cache_tokens: int | None = None
    kv_blocks: int | None = None  # of the GPU; only older versions, and where it is overridden
    cpu_blocks: int | None = None
    max_concurrency: float | None = None  # requests of max_model_len that the KV cache holds
    attention_backend: str | None = None
    chunked_prefill_tokens: int | None = None  # the budget, where prefills are cut
    preemption_warnings: int = 0  # as far as the log was read
    model_snapshot: str | None = None  # commit of the model hub's snapshot that was loaded
    resolved: dict[str, str] = Field(default_factory=dict)  # of the line with the resolved config


class Start(Document):
    """One server start."""

    order: int  # k-th server of the sweep
    seconds: float | None = None  # started → Ready
    compile_cache: CompileCache | None = None  # as the log says it
    log: StartLog | None = None  # None: no vLLM server, or its log could not be read
    warmup_seconds: float | None = None
    warmup_requests: int | None = None
    warmup_steady: bool | None = None
