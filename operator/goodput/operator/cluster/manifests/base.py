"""What all objects share: metadata with an owner, restricted security, small volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from goodput.operator.cluster.names import Owner
from goodput.operator.spec.base import Resources, Toleration

Body = dict[str, Any]

UID: Final = 65532

#: Pod level of the "restricted" Pod Security Standard.
POD_SECURITY: Final[Mapping[str, Any]] = {
    "runAsNonRoot": True,
    "runAsUser": UID,
    "runAsGroup": UID,
    "fsGroup": UID,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
#: Container level of the same, and nothing may be written outside of volumes.
CONTAINER_SECURITY: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
TMP: Final = "/tmp"  # noqa: S108  a volume of its own in every pod


def metadata(owner: Owner, name: str, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None) -> Body:
    """Metadata of a child of the sweep."""
    made: Body = {
        "name": name,
        "namespace": owner.namespace,
        "labels": dict(labels),
        "ownerReferences": [owner.reference()],
    }
    if annotations:
        made["annotations"] = dict(annotations)
    return made


def empty_dir(name: str, path: str, *, medium: str | None = None, limit: str | None = None) -> tuple[Body, Body]:
    """A volume that lives as long as its pod, and its mount."""
    source: Body = {}
    if medium is not None:
        source["medium"] = medium
    if limit is not None:
        source["sizeLimit"] = limit
    return {"name": name, "emptyDir": source}, {"name": name, "mountPath": path}


def claim(name: str, path: str, claim_name: str) -> tuple[Body, Body]:
    """A PersistentVolumeClaim as volume, and its mount."""
    volume = {"name": name, "persistentVolumeClaim": {"claimName": claim_name}}
    return volume, {"name": name, "mountPath": path}


def config_map(name: str, path: str, config_map_name: str, *, optional: bool = False) -> tuple[Body, Body]:
    """A ConfigMap as volume, and its read-only mount."""
    source: Body = {"name": config_map_name}
    if optional:
        source["optional"] = True
    return {"name": name, "configMap": source}, {"name": name, "mountPath": path, "readOnly": True}


def secret_file(name: str, path: str, secret: str, key: str, file: str) -> tuple[Body, Body]:
    """One key of a Secret as a read-only file in a folder, and its mount."""
    source = {"secretName": secret, "items": [{"key": key, "path": file}]}
    return {"name": name, "secret": source}, {"name": name, "mountPath": path, "readOnly": True}


def resources(asked: Resources, defaults: Mapping[str, Mapping[str, str]]) -> Body:
    """Requests and limits: what the user wrote, over the defaults.

    A default request is left out where the user set a limit of that resource: Kubernetes then requests the limit.
    """
    limits = {**defaults.get("limits", {}), **asked.limits}
    requests = {
        key: value for key, value in defaults.get("requests", {}).items() if key not in asked.limits
    } | asked.requests
    return {key: value for key, value in (("limits", limits), ("requests", requests)) if value}


def tolerations(wanted: Sequence[Toleration]) -> list[Body]:
    """Tolerations as a PodSpec has them."""
    return [one.model_dump(by_alias=True, exclude_none=True) for one in wanted]


def secret_env(name: str, secret: str, key: str) -> Body:
    """An environment variable whose value only the kubelet reads."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
