"""Packing what a trial leaves behind, before any of it is deleted."""

from __future__ import annotations

from collections.abc import Sequence

from goodput.operator.cluster import bodies, logs, names
from goodput.operator.cluster.api import Api
from goodput.operator.cluster.bodies import Body
from goodput.operator.cluster.errors import ApiError
from goodput.operator.cluster.manifests import configmaps
from goodput.operator.cluster.names import Owner
from goodput.operator.cluster.observe import Children
from goodput.operator.sweep import TrialId


async def save_logs(api: Api, owner: Owner, trial: TrialId, children: Children) -> None:
    """Write the trial's log ConfigMap; what an earlier call saved and is gone by now stays in it."""
    servers = _of(children.pods, trial, names.SERVER)
    runners = _of(children.pods, trial, names.RUNNER)
    parents = [*_of(children.deployments, trial, names.SERVER), *_of(children.jobs, trial, names.RUNNER)]
    found = {
        logs.SERVER_LOG: await _log(api, servers, names.SERVER),
        logs.RUNNER_LOG: await _log(api, runners, names.RUNNER),
    }
    files = {name: logs.packed(text, logs.LIMITS[name]) for name, text in found.items() if text}
    if servers or runners:
        files[logs.PODS] = logs.description([*servers, *runners])
    memory = await api.get("ConfigMap", owner.namespace, names.memory_name(owner, trial))
    plan = configmaps.read(memory, names.TRIAL_FILE)
    if plan is not None and len(plan) <= logs.PLAN_BYTES:
        files[names.TRIAL_FILE] = plan
    files[logs.TARGET] = trial.folder.encode()
    files[logs.EVENTS] = logs.events(await _events(api, owner, [*parents, *servers, *runners]))
    body = configmaps.files(owner, names.logs_name(owner, trial), names.LOGS, files, trial)
    change: dict[str, object] = {key: body[key] for key in ("data", "binaryData") if key in body}
    try:
        await api.patch("ConfigMap", owner.namespace, names.logs_name(owner, trial), change)
    except ApiError as error:
        if error.status != 404:
            raise
        await api.create(body)


def _of(found: Sequence[Body], trial: TrialId, role: str) -> list[Body]:
    return [
        body
        for body in found
        if bodies.labels(body).get(names.ROLE) == role and names.trial_of(bodies.labels(body)) == trial
    ]


async def _log(api: Api, pods: Sequence[Body], container: str) -> str:
    """Logs of all pods of a role, each with that of the container before it was restarted."""
    parts: list[str] = []
    for pod in sorted(pods, key=bodies.created):
        restarts = int(bodies.container_status(pod, container).get("restartCount") or 0)
        for previous in (True, False) if restarts else (False,):
            text = await api.log(pod, container, previous=previous)
            if text:
                parts.append(text)
    return "\n".join(parts)


async def _events(api: Api, owner: Owner, about: Sequence[Body]) -> list[Body]:
    uids = {bodies.uid(body) for body in about}
    uids |= {str(one["uid"]) for body in about for one in bodies.meta(body).get("ownerReferences") or ()}
    uids.discard(owner.uid)
    return [event for uid in sorted(uids) for event in await api.events(owner.namespace, uid)]
