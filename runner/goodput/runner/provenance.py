"""What was measured on what: from the server's answers, its log, and what the driver knows. Pure.

Where several sources know a value, the one closest to the process wins: ``/server_info``, then its log, then the
driver's facts, then what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from goodput.analysis.schema.provenance import GpuFacts, Provenance, StartLog
from goodput.runner.contract import TrialPlan
from goodput.runner.resolved import resolved_config

_SNAPSHOT = re.compile(r"/snapshots/([0-9a-f]{40})\b")
_COMMIT = re.compile(r"\+g([0-9a-f]{7,40})\b")
#: Fields of the log's config line that have another name in ``/server_info``.
_OF_LOG = {"kv_cache_dtype": "cache_dtype", "max_seq_len": "max_model_len"}
_NESTED = frozenset({"load_format", "model", "speculative_config"})  # of the log; not compared with flags


def resolved_of(info: Mapping[str, Any] | None, log: StartLog | None) -> dict[str, str]:
    """The config as the server resolved it: what ``/server_info`` hides, its log may say."""
    found: dict[str, str] = {}
    if log is not None:
        found = {_OF_LOG.get(name, name): value for name, value in log.resolved.items() if name not in _NESTED}
        if log.attention_backend is not None:
            found["attention_backend"] = log.attention_backend
    return dict(sorted((found | resolved_config(info)).items()))


def snapshot_of(info: Mapping[str, Any] | None, plan: TrialPlan) -> str | None:
    """Commit of the model that was loaded, where the server, its path, the log or this machine's cache tells."""
    commit = _text(_part(info, "transformers"), "model_commit")
    if commit is not None:
        return commit
    config = _part(_part(info, "vllm_config"), "model_config")
    path = _SNAPSHOT.search(str(config.get("model", "")))
    if path is not None:
        return path[1]
    log = plan.server.log
    return (log.model_snapshot if log is not None else None) or plan.server.model_revision


def provenance(
    engine_version: str | None,
    info: Mapping[str, Any] | None,
    resolved: Mapping[str, str],
    plan: TrialPlan,
    gpus: Sequence[GpuFacts],
) -> Provenance:
    """All of it. ``gpus``: those that are known to be the server's."""
    system, facts = _part(info, "system_env"), plan.server
    log = facts.log or StartLog()
    known = engine_version or log.engine_version
    memories = [gpu.memory_gib for gpu in gpus if gpu.memory_gib is not None]
    no_cuda = system.get("is_cuda_available") == "False"
    return Provenance(
        engine_version=known,
        engine_commit=_commit(info, known),
        model=plan.model,
        model_revision=snapshot_of(info, plan) or resolved.get("revision") or plan.model_revision,
        model_content=facts.model_content,
        image=facts.image,
        image_digest=facts.image_digest,
        torch=_text(system, "torch_version"),
        cuda=None if no_cuda else _text(system, "cuda_runtime_version") or _text(system, "cuda_compiled_version"),
        driver=_text(system, "nvidia_driver_version") or next((gpu.driver for gpu in gpus if gpu.driver), None),
        gpu=_text(system, "nvidia_gpu_models") or ", ".join(gpu.name for gpu in gpus if gpu.name) or None,
        gpu_uuid=",".join(gpu.uuid for gpu in gpus if gpu.uuid) or None,
        gpu_memory_gib=min(memories, default=None),
        node=facts.node,
        url=facts.url if facts.external else None,
        resolved=dict(resolved),
        goodput_version=goodput_version(),
    )


def goodput_version() -> str | None:
    """Version of this distribution; None where it runs from a tree that is not installed."""
    try:
        return version("goodput")
    except PackageNotFoundError:
        return None


def _commit(info: Mapping[str, Any] | None, engine_version: str | None) -> str | None:
    """Of the engine's sources: as it was built with, else from a development version's local part."""
    built = _text(_part(info, "vllm_env"), "VLLM_BUILD_COMMIT")
    if built and built != "unknown":
        return built
    found = _COMMIT.search(engine_version or "")
    return found[1] if found else None


def _part(document: Mapping[str, Any] | None, key: str) -> Mapping[str, Any]:
    found = (document or {}).get(key)
    return found if isinstance(found, Mapping) else {}


def _text(document: Mapping[str, Any], key: str) -> str | None:
    value = document.get(key)
    return value.strip() if isinstance(value, str) and value.strip() else None
