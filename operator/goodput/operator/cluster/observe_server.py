"""The server of a trial: a Deployment and its pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from goodput.operator.cluster import bodies, classify_pod
from goodput.operator.cluster.bodies import Body
from goodput.operator.observed import Failure, Server
from goodput.operator.spec.command import SERVER_PORT

CONTAINER = "server"


def observe_server(
    deployment: Body | None,
    pods: Sequence[Body],
    *,
    expected: str | None,
    now: float,
    logs: Mapping[str, str],
) -> Server | None:
    """The server as the planner sees it, or None where nothing of it is left.

    ``expected`` is the UID of the pod that the runner measures: any other pod is not this trial's server.
    """
    if deployment is None or bodies.deleting(deployment):
        if deployment is None and not pods:
            return None
        since = bodies.created(deployment or pods[0])
        return Server(state="stopping", since=since, running=_earliest_running(pods))
    since = bodies.created(deployment)
    pod = _the_pod(pods, expected)
    if pod is None:
        if expected is not None:
            return Server(state="ended", since=since, failure=Failure("ServerGone", "the server's pod went away"))
        return _without_pod(deployment, since)
    return _with_pod(pod, since, expected, now, logs.get(bodies.uid(pod)))


def _the_pod(pods: Sequence[Body], expected: str | None) -> Body | None:
    if expected is not None:
        return next((pod for pod in pods if bodies.uid(pod) == expected), None)
    living = [pod for pod in pods if not bodies.deleting(pod) and classify_pod.disrupted(pod) is None]
    return max(living or list(pods), key=bodies.created, default=None)


def _without_pod(deployment: Body, since: float) -> Server:
    failed = bodies.condition(deployment, "ReplicaFailure")
    if failed is None or failed.get("status") != "True":
        return Server(state="pending", since=since)
    failure, waiting = classify_pod.not_created(str(failed.get("message", "")))
    return Server(state="pending", since=since, failure=failure, waiting=waiting)


def _with_pod(pod: Body, since: float, expected: str | None, now: float, log: str | None) -> Server:
    found = bodies.container_status(pod, CONTAINER)
    state, failure = _state(pod, found, expected, now, log)
    ready = bodies.condition(pod, "Ready") if state == "ready" else None
    address = bodies.status(pod).get("podIP")
    spec: Body = next((one for one in pod.get("spec", {}).get("containers", ()) if one.get("name") == CONTAINER), {})
    return Server(
        state=state,
        since=since,
        failure=failure,
        waiting=classify_pod.waiting_for(pod) if state == "pending" and failure is None else None,
        scheduled=classify_pod.scheduled(pod),
        running=_running(pod),
        ready=bodies.seconds(ready.get("lastTransitionTime")) if ready else None,
        url=_url(str(address)) if address else None,
        pod_uid=bodies.uid(pod),
        image=spec.get("image"),
        image_digest=_digest(str(found.get("imageID", ""))),
        node=pod.get("spec", {}).get("nodeName"),
    )


def _state(
    pod: Body, found: Mapping[str, object], expected: str | None, now: float, log: str | None
) -> tuple[Literal["pending", "starting", "ready", "ended"], Failure | None]:
    gone = classify_pod.disrupted(pod)
    if gone is not None:
        return "ended", gone
    failure = classify_pod.ended(pod, CONTAINER, log)
    if failure is not None:
        return "ended", failure
    if bodies.deleting(pod):
        return ("ended", Failure("ServerGone", "the server's pod was deleted")) if expected else ("pending", None)
    failure = classify_pod.refused(pod, CONTAINER, now)
    if failure is not None:
        return "pending", failure
    if bodies.holds(pod, "Ready"):
        return "ready", None
    state = found.get("state")
    return ("starting", None) if isinstance(state, Mapping) and "running" in state else ("pending", None)


def _running(pod: Body) -> float | None:
    """When the container first ran, as far as its status remembers."""
    found = bodies.container_status(pod, CONTAINER)
    moments = [
        bodies.seconds(part.get("startedAt"))
        for holder in (found.get("lastState"), found.get("state"))
        for part in (holder or {}).values()
        if isinstance(part, Mapping)
    ]
    return min((moment for moment in moments if moment is not None), default=None)


def _earliest_running(pods: Sequence[Body]) -> float | None:
    return min((moment for pod in pods if (moment := _running(pod)) is not None), default=None)


def _url(address: str) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{SERVER_PORT}"


def _digest(image_id: str) -> str | None:
    return image_id.rpartition("@")[2] or None
