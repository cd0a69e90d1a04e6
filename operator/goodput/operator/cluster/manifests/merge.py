"""The user's podTemplate laid over a pod template of ours, as a strategic merge does it.

Maps are merged; lists whose items have a key are merged by that key; other lists are replaced. What a template
may not ask for was refused with the spec (`goodput.operator.spec.podguard`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from goodput.operator.cluster.errors import TemplateError

#: Merge keys of the lists in a PodSpec (https://kubernetes.io/docs/reference/using-api/server-side-apply, listMapKeys).
MERGE_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}


def merge_template(template: Mapping[str, Any], override: Mapping[str, Any] | None) -> dict[str, Any]:
    """The pod template with the override on top. Raises `TemplateError` for an item of a list without its key."""
    return dict(template) if not override else _merge_maps(template, override)


def _merge_maps(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            merged[key] = _merge_maps(old if isinstance(old, Mapping) else {}, value)
        elif isinstance(value, list) and isinstance(old, list):
            merged[key] = _merge_lists(key, old, value)
        else:
            merged[key] = value
    return merged


def _merge_lists(field: str, base: list[Any], over: list[Any]) -> list[Any]:
    if field == "tolerations":
        return base + [one for one in over if one not in base]
    key = MERGE_KEYS.get(field)
    if key is None:
        return list(over)
    merged = {item[key]: item for item in base if isinstance(item, Mapping)}
    for item in over:
        if not isinstance(item, Mapping) or key not in item:
            raise TemplateError(f"podTemplate: every item of {field} needs a {key}")
        old = merged.get(item[key])
        # A variable is one value: value and valueFrom never mix. A volume has one source.
        merged[item[key]] = dict(item) if old is None or field in ("env", "volumes") else _merge_maps(old, item)
    return list(merged.values())
