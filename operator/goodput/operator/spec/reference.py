"""The field reference, rendered from the same schema and message table as the CRD.

``python -m goodput.operator.spec.reference > docs/spec.md`` writes it; a test checks that the file is up to date.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from goodput.operator.spec.crd import Schema, nodes, root_schema
from goodput.operator.spec.grid import MAX_CELLS, MAX_CONFIGS
from goodput.operator.spec.messages import CHANGE_RULES, SHAPE_RULES
from goodput.operator.spec.notbuilt import UNBUILT
from goodput.operator.spec.scalars import DURATION_PATTERN


def _unbuilt() -> str:
    return ", ".join(f"`{each.field}`" + (f" ({', '.join(each.values)})" if each.values else "") for each in UNBUILT)


_INTRO = f"""\
<!-- Rendered: python -m goodput.operator.spec.reference > docs/spec.md -->
# The BenchmarkSweep resource

`apiVersion: goodput.dev/v1alpha1`, `kind: BenchmarkSweep`, short name `bsw`. The same file is applied to a cluster
(`kubectl apply -f sweep.yaml`) and run on one machine (`goodput run sweep.yaml`); `goodput plan sweep.yaml` shows what
would be measured. Examples: [`examples/`](../examples), [`manifests/samples/`](../manifests/samples).

- **Durations** are text such as `500ms`, `20m` or `1h30m`.
- **Quantities** are Kubernetes quantities such as `4`, `"0.5"` or `16Gi`.
- **Flags** are written in snake_case. Their values are whole numbers or text; booleans and decimals are quoted:
  `"true"` gives `--flag`, `"false"` gives `--no-flag`. Values are compared after spelling them one way (`8k` and
  `8000` are one value). A flag that no engine knows is refused with the nearest name; an engine gets those flags of
  a grid that it knows. Flags that are set by the operator (`host`, `port`, `served_model_name`, …) are refused.
- **Order**: configs are taken engine by engine, grid flags in alphabetical order, their values as written. The first
  config is the reference unless `configs.reference` names another.
- **`on` and `off`** are quoted in YAML: `sentinel: "off"`.
- **Size**: at most {MAX_CONFIGS:,} configs before exclusion, and {MAX_CELLS:,} cells (configs x loads x blocks).
  Larger grids are refused without being expanded.
- **GPUs** of a vLLM config are tensor x pipeline x data parallel size. Without a GPU count in `resources` the operator
  asks for so many `nvidia.com/gpu`; an explicit count must match; `nvidia.com/gpu: 0` is a server on CPU.
- **Results on one machine**: `file://./results` is relative to the current folder. Pods share no files, so that a
  cluster needs an object store.
- **Not built yet**, and refused, never ignored: {_unbuilt()}.

What is refused is refused with the field, its value and what to write instead: by the API server, by the operator
(`Accepted=False`), and by `goodput plan` and `goodput run` (exit code 2).
What only one machine, or only a cluster, refuses is a note of `goodput plan` where results go to an object store.
"""


def text() -> str:
    """The contents of ``docs/spec.md``."""
    schema = root_schema()
    parts = [_INTRO, *_sections(schema["properties"]["spec"], "spec"), *_rules()]
    parts += ["## Status\n", *_table(schema["properties"]["status"], "status", deep=True)]
    return "\n".join(parts)


def _sections(spec: Schema, path: str) -> Iterator[str]:
    """A table for each field of the spec that has fields, and one for the rest."""
    simple = [name for name, child in spec["properties"].items() if not _inner(child)]
    for name, child in spec["properties"].items():
        if name in simple:
            continue
        required = " (required)" if name in spec["required"] else ""
        yield f"## {path}.{name}{'[]' if 'items' in child else ''}{required}\n"
        yield f"{child['description']}\n"
        yield from _table(_inner(child) or {}, "", deep=True)
    yield "## Switches\n"
    yield from _table({"properties": {name: spec["properties"][name] for name in simple}}, path)


def _inner(schema: Schema) -> Schema | None:
    """The node that has the fields: itself, or its items."""
    node = schema.get("items", schema)
    return node if "properties" in node else None


def _table(schema: Schema, prefix: str, *, deep: bool = False) -> Iterator[str]:
    rows = [(path, node) for path, node in nodes(schema) if path and not path.endswith(("[]", "*"))]
    yield "| field | type | default | |"
    yield "|---|---|---|---|"
    required = {path for path, _ in rows if _is_required(schema, path)}
    for path, node in rows:
        if not deep and "." in path:
            continue
        name = f"{prefix}.{path}" if prefix else path
        mark = "required" if path in required else _default(node)
        yield f"| `{name}` | {_type(node)} | {mark} | {node.get('description', '')} |"
    yield ""


def _is_required(schema: Schema, path: str) -> bool:
    node, *parts = schema, *path.split(".")
    for part in parts[:-1]:
        node = node["properties"][part.removesuffix("[]")]
        node = node["items"] if part.endswith("[]") else node
    return parts[-1] in node.get("required", ())


def _type(node: Schema) -> str:
    if "enum" in node:
        return " \\| ".join(f"`{value}`" for value in node["enum"])
    if "items" in node:
        items = node["items"]
        return f"list of {'objects' if 'properties' in items else _type(items)}; {_range(node)}"
    if "additionalProperties" in node:
        return f"map of {_type(node['additionalProperties'])}"
    return _scalar(node)


def _scalar(node: Schema) -> str:
    kind, pattern = node.get("type", "object"), node.get("pattern", "")
    if node.get("x-kubernetes-int-or-string"):
        return "quantity" if pattern else "whole number or text"
    if kind in ("integer", "number"):
        return f"{'whole number' if kind == 'integer' else 'number'}{_bounds(node)}"
    if kind == "string":
        return "duration" if pattern == DURATION_PATTERN else "time" if "format" in node else "text"
    return str(kind)


def _bounds(node: Schema) -> str:
    low = f"{'>' if node.get('exclusiveMinimum') else '≥'} {_number(node['minimum'])}" if "minimum" in node else ""
    high = f"{'<' if node.get('exclusiveMaximum') else '≤'} {_number(node['maximum'])}" if "maximum" in node else ""
    return "".join(f" {bound}" for bound in (low, high) if bound)


def _number(bound: float) -> str:
    return f"{int(bound):,}" if bound == int(bound) else f"{bound:g}"


def _range(node: Schema) -> str:
    return f"{node.get('minItems', 0)} to {node['maxItems']}" if "maxItems" in node else "any number"


def _default(node: Schema) -> str:
    value: Any = node.get("default")
    return "" if value is None or isinstance(value, dict) else f"`{json.dumps(value)}`".replace('"', "")


def _rules() -> Iterator[str]:
    yield "## Rules\n"
    yield "The API server and the command line enforce these with the same words.\n"
    for rule in SHAPE_RULES:
        yield f"- `{rule.field}` {rule.message}; {rule.fix}."
    yield "\nThese cannot be changed once the sweep exists; everything else can (`cancel` in one direction):\n"
    yield ", ".join(f"`{rule.field}`" for rule in CHANGE_RULES if rule.id != "cancel") + ".\n"


if __name__ == "__main__":
    sys.stdout.write(text())
