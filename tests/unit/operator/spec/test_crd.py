from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from goodput.operator.spec import crd
from goodput.operator.spec.messages import RULES
from goodput.operator.spec.models import SweepSpec
from goodput.operator.spec.parse import parse_spec

ROOT = Path(__file__).parents[4]
FILE = ROOT / "manifests/crd.yaml"
DEFINITION: dict[str, Any] = yaml.safe_load(FILE.read_text())
(VERSION,) = DEFINITION["spec"]["versions"]
SCHEMA: dict[str, Any] = VERSION["schema"]["openAPIV3Schema"]


def test_the_file_is_what_the_models_render() -> None:
    assert FILE.read_text() == crd.text()


def test_names_and_columns() -> None:
    names = DEFINITION["spec"]["names"]
    assert (names["kind"], names["plural"], names["shortNames"]) == ("BenchmarkSweep", "benchmarksweeps", ["bsw"])
    assert VERSION["subresources"] == {"status": {}}
    shown = [column["name"] for column in VERSION["additionalPrinterColumns"] if not column.get("priority")]
    assert shown == ["Phase", "Done", "Best", "Goodput", "Verdict", "Reason", "Age"]
    for column in VERSION["additionalPrinterColumns"]:
        path = column["jsonPath"].removeprefix(".").partition("[?")[0]
        if not path.startswith("metadata"):
            crd.node_at(SCHEMA, path)  # the column's field exists


def test_messages_are_those_of_the_table() -> None:
    written = {
        (path, validation["rule"], validation["message"])
        for path, node in crd.nodes(SCHEMA)
        for validation in node.get("x-kubernetes-validations", ())
    }
    assert written == {(rule.at, rule.cel, rule.text) for rule in RULES.values()}


def test_every_field_has_a_description_and_bounds() -> None:
    for path, node in crd.nodes(SCHEMA):
        name = path.rpartition(".")[2]
        if (path.startswith("spec") and not path.endswith(("[]", "*"))) or path == "status":
            assert node.get("description"), path
        if path.startswith("spec") and node.get("type") == "array":
            assert node.get("maxItems"), path
        if path.startswith("spec") and "additionalProperties" in node:
            assert node.get("maxProperties"), path
        if path.startswith("spec") and node.get("type") == "string" and not path.endswith("nodeSelector.*"):
            assert node.get("maxLength") or node.get("enum"), path
        assert name == "metadata" or node.get("type") or node.get("x-kubernetes-int-or-string"), path


def test_fields_and_defaults_are_those_of_the_models(sweep: Callable[..., dict[str, Any]]) -> None:
    document = sweep()
    document["spec"] = _defaulted(document["spec"], SCHEMA["properties"]["spec"])
    defaulted = parse_spec(document)
    assert defaulted == parse_spec(sweep())
    assert defaulted.model_fields_set >= {"plan", "slo", "objective", "budget", "retention", "scheduling", "runner"}
    assert set(SCHEMA["properties"]["spec"]["properties"]) == {
        field.alias or name for name, field in SweepSpec.model_fields.items()
    }


@pytest.mark.parametrize("path", ["spec.engines[].podTemplate", "spec.runner.podTemplate"])
def test_only_pod_templates_keep_unknown_fields(path: str) -> None:
    keeping = {at for at, node in crd.nodes(SCHEMA) if node.get("x-kubernetes-preserve-unknown-fields")}
    assert path in keeping
    assert len(keeping) == 2


def _defaulted(value: Any, schema: Mapping[str, Any]) -> Any:
    """What the API server makes of a value: defaults of absent fields filled in, from the outside inwards."""
    if isinstance(value, list):
        return [_defaulted(item, schema["items"]) for item in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    filled = {name: child["default"] for name, child in schema["properties"].items() if "default" in child} | value
    return {name: _defaulted(item, schema["properties"][name]) for name, item in filled.items()}
