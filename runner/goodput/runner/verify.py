"""Is this the server that the plan means? Answers with its provenance, or fails the trial."""

from __future__ import annotations

import re
from typing import Any

import httpx

from goodput.analysis.schema.provenance import GpuFacts, Provenance
from goodput.runner.contract import ServerFacts, TrialPlan
from goodput.runner.errors import ServerGoneError, ServerMismatchError
from goodput.runner.gpu import TIMEOUT_SECONDS
from goodput.runner.gpuinfo import gpus_of_pod
from goodput.runner.modellength import check_lengths, with_length
from goodput.runner.page import get_page
from goodput.runner.provenance import provenance, resolved_of, snapshot_of
from goodput.runner.resolved import mismatches
from goodput.runner.server import Server


def verify(server: Server, plan: TrialPlan) -> Provenance:
    """Ask the server who it is and send it one real request.

    Endpoints that it lacks give None. One thing never passes: a value that is known and differs from the plan.

    Raises:
        ServerGoneError: it does not answer, or not with health.
        ServerMismatchError: other model, other revision, or a flag that was resolved to something else.
        RequestsTooLongError: no request of a load fits its model length.
        RequestRefusedError: it does not complete a one-token request.
    """
    server.healthy()
    models = server.models()
    info = server.info()
    resolved = with_length(resolved_of(info, plan.server.log), models, plan.served_model)
    faults = [
        *_model_faults(models, plan),
        *_revision_faults(resolved.get("revision"), snapshot_of(info, plan), plan.model_revision),
        *mismatches(plan.server.expects, resolved),
    ]
    if faults:
        raise ServerMismatchError("; ".join(faults))
    check_lengths(plan, resolved)
    found = provenance(server.version(), info, resolved, plan, _gpus(plan.server))
    server.complete(plan.endpoint, "Hello")
    return found


def _gpus(facts: ServerFacts) -> tuple[GpuFacts, ...]:
    """The server's GPUs: as the driver saw them, else as the exporter of its node says. Nice to have."""
    if facts.gpus or facts.gpu_metrics_url is None:
        return facts.gpus
    try:
        with httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False) as client:
            page = get_page(client, facts.gpu_metrics_url, timeout_seconds=TIMEOUT_SECONDS)
    except (ServerGoneError, httpx.InvalidURL, ValueError):
        return ()
    return gpus_of_pod(page.text, facts.pod) if page.problem is None else ()


def _model_faults(models: list[dict[str, Any]] | None, plan: TrialPlan) -> list[str]:
    served = [str(entry.get("id")) for entry in models or ()]
    if not served or plan.served_model in served:
        return []
    return [f"it serves {', '.join(served)}, not {plan.served_model}"]


def _revision_faults(actual: str | None, snapshot: str | None, planned: str | None) -> list[str]:
    """A commit that was asked for must be the one that was loaded; a branch or tag is only compared by name."""
    if planned is None:
        return []
    if snapshot is not None and re.fullmatch("[0-9a-f]{40}", planned) and snapshot != planned:
        return [f"its model snapshot is {snapshot}, not {planned}"]
    return [f"its model revision is {actual}, not {planned}"] if actual is not None and actual != planned else []
