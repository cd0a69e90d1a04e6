"""Is this the server that the plan means? Answers with its provenance, or fails the trial."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from goodput.analysis.schema import Provenance
from goodput.runner.contract import TrialPlan
from goodput.runner.errors import ServerMismatchError
from goodput.runner.resolved import mismatches, resolved_config
from goodput.runner.server import Server


def verify(server: Server, plan: TrialPlan) -> Provenance:
    """Ask the server who it is and send it one real request.

    Endpoints that it lacks give None. One thing never passes: a value that is known and differs from the plan.

    Raises:
        ServerGoneError: it does not answer, or not with health.
        ServerMismatchError: other model, other revision, or a flag that was resolved to something else.
        RequestRefusedError: it does not complete a one-token request.
    """
    server.healthy()
    models = server.models()
    info = server.info()
    resolved = resolved_config(info)
    revision = resolved.get("revision")
    faults = [
        *_model_faults(models, plan),
        *_revision_faults(revision, plan.model_revision),
        *mismatches(plan.server.expects, resolved),
    ]
    if faults:
        raise ServerMismatchError("; ".join(faults))
    provenance = provenance_of(plan, server.version(), info, resolved)
    server.complete(plan.endpoint, "Hello")
    return provenance


def provenance_of(
    plan: TrialPlan, engine_version: str | None, info: Mapping[str, Any] | None, resolved: dict[str, str]
) -> Provenance:
    """What is known of the server: from the plan, ``/version`` and ``/server_info``."""
    environment = (info or {}).get("system_env")
    system: Mapping[str, Any] = environment if isinstance(environment, Mapping) else {}
    facts = plan.server
    return Provenance(
        engine_version=engine_version,
        model=plan.model,
        model_revision=resolved.get("revision") or plan.model_revision,
        image=facts.image,
        image_digest=facts.image_digest,
        torch=_text(system, "torch_version"),
        cuda=_text(system, "cuda_runtime_version") or _text(system, "cuda_compiled_version"),
        driver=_text(system, "nvidia_driver_version"),
        gpu=_text(system, "nvidia_gpu_models"),
        gpu_uuid=facts.gpu_uuid,
        node=facts.node,
        url=facts.url if facts.external else None,
        resolved=resolved,
        goodput_version=goodput_version(),
    )


def goodput_version() -> str | None:
    """Version of this distribution; None where it runs from a tree that is not installed."""
    try:
        return version("goodput")
    except PackageNotFoundError:
        return None


def _model_faults(models: list[dict[str, Any]] | None, plan: TrialPlan) -> list[str]:
    served = [str(entry.get("id")) for entry in models or ()]
    if not served or plan.served_model in served:
        return []
    return [f"it serves {', '.join(served)}, not {plan.served_model}"]


def _revision_faults(actual: str | None, planned: str | None) -> list[str]:
    if actual is None or planned is None or actual == planned:
        return []
    return [f"its model revision is {actual}, not {planned}"]


def _text(document: Mapping[str, Any], key: str) -> str | None:
    value = document.get(key)
    return value.strip() if isinstance(value, str) and value.strip() else None
