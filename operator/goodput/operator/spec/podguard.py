"""What a podTemplate may not ask for: anything that reaches out of the pod or widens its rights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from goodput.operator.spec.errors import MISSING, Problem
from goodput.operator.spec.models import SweepSpec

_HOST = ("hostNetwork", "hostPID", "hostIPC", "nodeName")
_ACCOUNT = ("serviceAccountName", "serviceAccount", "automountServiceAccountToken")
_OWNED = {
    "restartPolicy": "the operator restarts by itself",
    "activeDeadlineSeconds": "use startupTimeout and budget.deadline",
    "terminationGracePeriodSeconds": "the operator sets it",
    "ephemeralContainers": "use kubectl debug",
}


def template_problems(spec: SweepSpec) -> Iterator[Problem]:
    """Refusals in all podTemplates."""
    for number, engine in enumerate(spec.engines):
        if engine.pod_template is not None:
            yield from guard(f"spec.engines[{number}].podTemplate", engine.pod_template, "server")
    if spec.runner.pod_template is not None:
        yield from guard("spec.runner.podTemplate", spec.runner.pod_template, "runner")


def guard(place: str, template: Mapping[str, Any], container: str) -> Iterator[Problem]:
    """Refusals in one podTemplate; ``container`` is the name of the pod's own container."""
    yield from _known(place, template, ("metadata", "spec"))
    yield from _metadata(f"{place}.metadata", template.get("metadata"))
    here, spec = f"{place}.spec", template.get("spec")
    if not isinstance(spec, Mapping):
        yield from _shape(here, spec, "a map")
        return
    yield from _pod(here, spec)
    yield from _security(f"{here}.securityContext", _mapping(spec.get("securityContext")))
    for kind in ("volumes", "containers", "initContainers"):
        items = spec.get(kind)
        if items is not None and not (isinstance(items, list) and all(isinstance(item, Mapping) for item in items)):
            yield from _shape(f"{here}.{kind}", items, "a list of maps")
            continue
        for number, item in enumerate(items or ()):
            inner = f"{here}.{kind}[{number}]"
            yield from _volume(inner, item) if kind == "volumes" else _container(inner, item, container)


def _metadata(place: str, metadata: object) -> Iterator[Problem]:
    if not isinstance(metadata, Mapping):
        yield from _shape(place, metadata, "a map")
        return
    yield from _known(place, metadata, ("labels", "annotations"))
    for kind in ("labels", "annotations"):
        for key in _mapping(metadata.get(kind)):
            if str(key).partition("/")[0].endswith("goodput.dev"):
                yield Problem(f"{place}.{kind}.{key}", MISSING, "is the operator's own key", "choose another key")


def _shape(place: str, value: object, wanted: str) -> Iterator[Problem]:
    if value is not None:
        yield Problem(place, value, f"must be {wanted}", "write it as in a PodTemplateSpec")


def _pod(place: str, spec: Mapping[str, Any]) -> Iterator[Problem]:
    for key in _HOST:
        if spec.get(key) not in (False, None):
            yield Problem(f"{place}.{key}", spec[key], "ties the pod to a host or its namespaces", "remove it")
    for key in _ACCOUNT:
        if spec.get(key) not in (False, None):
            fix = "remove it; results.serviceAccountName sets the runner's"
            yield Problem(f"{place}.{key}", spec[key], "gives the pod another identity", fix)
    for key, fix in _OWNED.items():
        if key in spec:
            yield Problem(f"{place}.{key}", spec[key], "belongs to the operator", f"remove it; {fix}")


def _volume(place: str, volume: Mapping[str, Any]) -> Iterator[Problem]:
    if "hostPath" in volume:
        fix = "use a PersistentVolumeClaim or an emptyDir"
        yield Problem(f"{place}.hostPath", MISSING, "mounts the node's files", fix)
    for source in _list(_mapping(volume.get("projected")).get("sources")):
        if "serviceAccountToken" in source:
            field = f"{place}.projected.sources"
            yield Problem(field, MISSING, "mounts a ServiceAccount's token", "remove it")


def _container(place: str, container: Mapping[str, Any], own: str) -> Iterator[Problem]:
    yield from _security(f"{place}.securityContext", _mapping(container.get("securityContext")))
    for port in _list(container.get("ports")):
        if port.get("hostPort"):
            yield Problem(f"{place}.ports", port["hostPort"], "opens a port of the node", "remove hostPort")
    if container.get("name") == own:
        for key in ("command", "args", "ports", "image", "startupProbe", "readinessProbe", "livenessProbe"):
            if key in container:
                fix = "remove it; flags belong in args or configs, the image in image"
                yield Problem(f"{place}.{key}", MISSING, "belongs to the operator", fix)


def _security(place: str, context: Mapping[str, Any]) -> Iterator[Problem]:
    for key in ("privileged", "allowPrivilegeEscalation"):
        if context.get(key):
            yield Problem(f"{place}.{key}", True, "widens the container's rights", "remove it")
    for key in ("runAsUser", "runAsGroup", "fsGroup"):
        if context.get(key) == 0:
            yield Problem(f"{place}.{key}", 0, "is root", "use another id, such as 65532")
    if 0 in _list(context.get("supplementalGroups"), of=int):
        yield Problem(f"{place}.supplementalGroups", MISSING, "has the root group", "remove 0")
    if context.get("runAsNonRoot") is False:
        yield Problem(f"{place}.runAsNonRoot", False, "allows root", "remove it")
    if _mapping(context.get("capabilities")).get("add"):
        added = context["capabilities"]["add"]
        yield Problem(f"{place}.capabilities.add", added, "widens the container's rights", "remove it")
    if _mapping(context.get("windowsOptions")).get("hostProcess"):
        yield Problem(f"{place}.windowsOptions.hostProcess", True, "runs as a process of the host", "remove it")
    if context.get("procMount") not in (None, "Default"):
        yield Problem(f"{place}.procMount", context["procMount"], "unmasks /proc", "remove it")
    for key in ("seccompProfile", "appArmorProfile"):
        if _mapping(context.get(key)).get("type") == "Unconfined":
            yield Problem(f"{place}.{key}.type", "Unconfined", "turns a guard off", "use RuntimeDefault")


def _known(place: str, given: Mapping[str, Any], known: tuple[str, ...]) -> Iterator[Problem]:
    for key in given:
        if key not in known:
            yield Problem(f"{place}.{key}", MISSING, "is not a known field", f"known here: {', '.join(known)}")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object, *, of: type = Mapping) -> list[Any]:
    return [item for item in value if isinstance(item, of)] if isinstance(value, (list, tuple)) else []
