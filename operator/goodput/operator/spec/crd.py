"""The CustomResourceDefinition, rendered from the models and the message table.

``python -m goodput.operator.spec.crd > manifests/crd.yaml`` writes it; a test checks that the file is up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from pydantic import BaseModel

from goodput.operator.spec.messages import CHANGE_RULES, SHAPE_RULES
from goodput.operator.spec.models import GROUP, KIND, VERSION, SweepSpec
from goodput.operator.spec.parse import model_in
from goodput.operator.spec.rule import Rule
from goodput.operator.spec.statusmodel import SweepStatus

Schema = dict[str, Any]

PLURAL = "benchmarksweeps"
SHORT_NAME = "bsw"

_HEADER = """\
# The BenchmarkSweep resource. Rendered from the models and the message table in operator/goodput/operator/spec:
# python -m goodput.operator.spec.crd > manifests/crd.yaml
"""
_KEPT = (
    "description",
    "type",
    "enum",
    "format",
    "maxItems",
    "maxLength",
    "maximum",
    "maxProperties",
    "minItems",
    "minLength",
    "minimum",
    "minProperties",
    "pattern",
    "required",
)
#: (column, type, path, shown only with -o wide)
_COLUMNS = (
    ("Phase", "string", ".status.phase", False),
    ("Done", "string", ".status.progress", False),
    ("Best", "string", ".status.best.label", False),
    ("Goodput", "number", ".status.best.goodput", False),
    ("Verdict", "string", ".status.verdict.name", False),
    ("Reason", "string", '.status.conditions[?(@.type=="Complete")].reason', False),
    ("Age", "date", ".metadata.creationTimestamp", False),
    ("Evidence", "string", ".status.evidence", True),
    ("Failed", "integer", ".status.counts.failed", True),
    ("GPU-Hours", "number", ".status.gpuHoursUsed", True),
    ("Finish-By", "string", ".status.estimate.finishBy", True),
    ("Results", "string", ".status.resultsURI", True),
)
#: Lists whose items have a key, for server-side apply and so that no key appears twice. (No list is of type set:
#: a set of numbers never equals itself in a rule such as ``self.x == oldSelf.x``; seen on Kubernetes 1.34.)
_LIST_TYPES: Mapping[str, Schema] = {
    "spec.engines": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    "status.conditions": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
}


def definition() -> Schema:
    """The whole CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": [SHORT_NAME],
                "categories": ["goodput"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_column(*column) for column in _COLUMNS],
                    "schema": {"openAPIV3Schema": root_schema()},
                }
            ],
        },
    }


def root_schema() -> Schema:
    """The structural schema with its rules."""
    root: Schema = {
        "description": "Finds the serving config with the best goodput for a model and a workload.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural(SweepSpec),
            "status": structural(SweepStatus),
        },
    }
    for path, extra in _LIST_TYPES.items():
        node_at(root, path).update(extra)
    for rule in (*SHAPE_RULES, *CHANGE_RULES):
        node_at(root, rule.at).setdefault("x-kubernetes-validations", []).append(_validation(rule))
    return root


def structural(model: type[BaseModel]) -> Schema:
    """A model's JSON schema as Kubernetes wants it: no references, no unions with null, OpenAPI 3.0 bounds."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    defaults = {found.__name__: _defaults(found) for found in _models(model)}
    return _Flattener(schema.get("$defs", {}), defaults).node({"$ref": f"#/$defs/{model.__name__}", **schema})


def node_at(root: Schema, path: str) -> Schema:
    """The node at a dotted path; ``[]`` steps into items."""
    node = root
    for part in filter(None, path.split(".")):
        node = node["properties"][part.removesuffix("[]")]
        if part.endswith("[]"):
            node = node["items"]
    return node


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """All nodes with their dotted paths, the schema's own first."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}" if path else name)
    if isinstance(schema.get("items"), dict):
        yield from nodes(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from nodes(schema["additionalProperties"], f"{path}.*")


class _Flattener:
    """Rewrites nodes of a JSON schema. ``defaults``: by model, the default of each field as it is written."""

    def __init__(self, definitions: Mapping[str, Schema], defaults: Mapping[str, Mapping[str, Any]]) -> None:
        self._definitions = definitions
        self._defaults = defaults

    def node(self, schema: Schema) -> Schema:
        """The node without references, unions with null, and titles."""
        schema, model = self._resolved(schema)
        plain = {key: schema[key] for key in _KEPT if key in schema}
        plain |= {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}
        if "description" in plain:
            plain["description"] = " ".join(plain["description"].split())
        for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if bound in schema:
                plain |= {limit: schema[bound], bound: True}
        if "properties" in schema:
            defaults = self._defaults.get(model, {})
            plain["properties"] = {
                name: self.node(child) | ({"default": defaults[name]} if name in defaults else {})
                for name, child in schema["properties"].items()
            }
        for key in ("items", "additionalProperties"):  # additionalProperties: false is not for Kubernetes
            if isinstance(schema.get(key), dict):
                plain[key] = self.node(schema[key])
        return plain

    def _resolved(self, schema: Schema) -> tuple[Schema, str]:
        """The node with its reference followed, and the name of the model it is."""
        choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
        merged = {**(choices[0] if choices else {}), **{k: v for k, v in schema.items() if k != "anyOf"}}
        model = merged.pop("$ref", "").rpartition("/")[2]
        return {**self._definitions.get(model, {}), **merged}, model


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        inner = model_in(field.annotation)
        if inner is not None:
            yield from _models(inner)


def _defaults(model: type[BaseModel]) -> dict[str, Any]:
    """The defaults of a model's fields as a user would write them, nested ones included.

    The API server judges a default by the rules before it fills in nested defaults, so they are whole.
    """
    defaults: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        value = None if field.is_required() else field.get_default(call_default_factory=True, validated_data={})
        if value not in (None, (), {}):
            holder = model.model_construct(**{name: value})
            defaults |= holder.model_dump(mode="json", by_alias=True, include={name}, exclude_none=True)
    return {name: _without_empty(value) for name, value in defaults.items()}


def _without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _without_empty(item) for key, item in value.items() if item not in ([], {})}


def _validation(rule: Rule) -> Schema:
    return {"rule": rule.cel, "message": rule.text}


def _column(name: str, kind: str, path: str, wide: bool) -> Schema:  # a row of a table
    return {"name": name, "type": kind, "jsonPath": path} | ({"priority": 1} if wide else {})


class _Dumper(yaml.SafeDumper):
    """Indents lists, and writes no anchors."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def text() -> str:
    """The contents of ``manifests/crd.yaml``."""
    return _HEADER + yaml.dump(definition(), Dumper=_Dumper, sort_keys=False, width=116, allow_unicode=True)


if __name__ == "__main__":
    sys.stdout.write(text())
