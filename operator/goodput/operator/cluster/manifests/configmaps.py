"""ConfigMaps: a trial's memory and plan, packed logs, and the input of canary and analysis."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from goodput.analysis.packing import pack, unpack
from goodput.operator.cluster import names
from goodput.operator.cluster.manifests import base
from goodput.operator.cluster.manifests.base import Body
from goodput.operator.cluster.names import Owner
from goodput.operator.sweep import TrialId


def memory(owner: Owner, trial: TrialId, order: int) -> Body:
    """The trial's memory: it exists before the server, and outlives server and runner."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": base.metadata(
            owner,
            names.memory_name(owner, trial),
            names.labels(owner, names.MEMORY, trial),
            {names.ORDER: str(order)},
        ),
    }


def files(owner: Owner, name: str, role: str, data: Mapping[str, bytes], trial: TrialId | None = None) -> Body:
    """Files for a volume."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": base.metadata(owner, name, names.labels(owner, role, trial)),
        **contents(data),
    }


def contents(data: Mapping[str, bytes]) -> Body:
    """Files as parts of a ConfigMap, packed where they are large. What is not text becomes binaryData."""
    text: dict[str, str] = {}
    binary: dict[str, str] = {}
    for key, content in data.items():
        packed = pack(content)
        try:
            text[key] = packed.decode()
        except UnicodeDecodeError:
            binary[key] = b64encode(packed).decode()
    return {name: found for name, found in (("data", text), ("binaryData", binary)) if found}


def read(body: Mapping[str, Any], key: str) -> bytes | None:
    """A file of a ConfigMap, unpacked; None where there is none."""
    text, binary = (body.get("data") or {}).get(key), (body.get("binaryData") or {}).get(key)
    if text is not None:
        return str(text).encode()
    return unpack(b64decode(binary)) if binary is not None else None
