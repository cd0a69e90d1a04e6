"""A few calls to the API server with the standard library alone."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CALL_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Api:
    """The API server at ``url``; ``ca``, ``certificate`` and ``key`` are PEM files."""

    url: str
    ca: Path
    certificate: Path
    key: Path

    def call(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Any:
        """Send one request; returns the JSON answer, or its text where it is not JSON.

        Raises OSError (of which urllib's errors are kinds) when the server is not there or refuses.
        """
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.certificate, self.key)
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind}
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=CALL_TIMEOUT_S, context=context) as answer:
            text = answer.read().decode()
        return json.loads(text) if answer.headers.get_content_type() == "application/json" else text

    def ready(self) -> bool:
        """Whether the server says so itself, its start-up hooks included."""
        try:
            return bool(self.call("GET", "/readyz") == "ok")
        except OSError:
            return False

    def node_ready(self, name: str) -> bool:
        """Whether the node exists, is Ready and carries no taint."""
        try:
            node = self.call("GET", f"/api/v1/nodes/{name}")
        except OSError:
            return False
        conditions = {item["type"]: item["status"] for item in node["status"].get("conditions", [])}
        return conditions.get("Ready") == "True" and not node["spec"].get("taints")

    def set_capacity(self, name: str, resource: str, count: int) -> None:
        """Give the node ``count`` pieces of an extended resource, in capacity and what pods may use."""
        key = resource.replace("/", "~1")
        paths = [f"/status/{kind}/{key}" for kind in ("capacity", "allocatable")]
        patch = [{"op": "add", "path": path, "value": str(count)} for path in paths]
        self.call("PATCH", f"/api/v1/nodes/{name}/status", patch, "application/json-patch+json")
