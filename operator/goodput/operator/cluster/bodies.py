"""Reading objects as the API server gives them: timestamps, conditions, owners, containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

Body = Mapping[str, Any]


def seconds(text: object) -> float | None:
    """Unix seconds of a Kubernetes timestamp, None where there is none."""
    if not isinstance(text, str):
        return None
    return datetime.fromisoformat(text).timestamp()


def timestamp(moment: float) -> str:
    """A Unix time as Kubernetes writes it: UTC, whole seconds."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def meta(body: Body) -> Mapping[str, Any]:
    """Metadata."""
    found: Mapping[str, Any] = body.get("metadata") or {}
    return found


def labels(body: Body) -> Mapping[str, str]:
    """Labels, empty where there are none."""
    return meta(body).get("labels") or {}


def annotated(body: Body) -> Mapping[str, str]:
    """Annotations, empty where there are none."""
    return meta(body).get("annotations") or {}


def uid(body: Body) -> str:
    """The object's UID."""
    return str(meta(body).get("uid", ""))


def created(body: Body) -> float:
    """When the object was created; 0 where the API server has not said."""
    return seconds(meta(body).get("creationTimestamp")) or 0.0


def deleting(body: Body) -> bool:
    """It was told to go and is still there."""
    return bool(meta(body).get("deletionTimestamp"))


def status(body: Body) -> Mapping[str, Any]:
    """Status, empty where there is none."""
    return body.get("status") or {}


def condition(body: Body, kind: str) -> Mapping[str, Any] | None:
    """The condition of that type, whatever its status."""
    found: Iterable[Mapping[str, Any]] = status(body).get("conditions") or ()
    return next((one for one in found if one.get("type") == kind), None)


def holds(body: Body, kind: str) -> bool:
    """The condition is there and True."""
    found = condition(body, kind)
    return found is not None and found.get("status") == "True"


def container_status(pod: Body, name: str) -> Mapping[str, Any]:
    """Status of one container of a pod; empty before the kubelet has reported it."""
    found: Iterable[Mapping[str, Any]] = status(pod).get("containerStatuses") or ()
    return next((one for one in found if one.get("name") == name), {})


def terminated(pod: Body, name: str) -> Mapping[str, Any] | None:
    """How the container ended last: now, or before it was restarted. None where it never ended."""
    found = container_status(pod, name)
    now: Mapping[str, Any] | None = (found.get("state") or {}).get("terminated")
    before: Mapping[str, Any] | None = (found.get("lastState") or {}).get("terminated")
    return now or before


def slim(body: Body) -> dict[str, Any]:
    """The body without what nobody reads: managed fields, and the contents of ConfigMaps."""
    light = {key: value for key, value in body.items() if key not in ("data", "binaryData")}
    light["metadata"] = {key: value for key, value in meta(body).items() if key != "managedFields"}
    return light
