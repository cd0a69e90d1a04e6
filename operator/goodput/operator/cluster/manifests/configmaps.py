"""ConfigMaps: a trial's memory and plan, packed logs, and the input of canary and analysis."""

from __future__ import annotations

import base64
from collections.abc import Mapping

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
    """Files for a volume. What is not text is stored as binaryData."""
    text: dict[str, str] = {}
    binary: dict[str, str] = {}
    for key, content in data.items():
        try:
            text[key] = content.decode()
        except UnicodeDecodeError:
            binary[key] = base64.b64encode(content).decode()
    body: Body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": base.metadata(owner, name, names.labels(owner, role, trial)),
    }
    if text:
        body["data"] = text
    if binary:
        body["binaryData"] = binary
    return body
