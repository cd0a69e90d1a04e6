"""The API server, one blocking call at a time: raw JSON over the official client's connection and sign-in.

Bodies are plain dicts and are checked by the API server (``fieldValidation=Strict``), not by generated models:
a user's podTemplate may hold fields that are newer than the client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import OpenApiException
from urllib3.exceptions import HTTPError

from goodput.operator.cluster.errors import ApiError

CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 20.0
POOL_SIZE: Final = 16

#: Where the API server has the objects of each kind.
PATHS: Final[Mapping[str, tuple[str, str]]] = {
    "Pod": ("/api/v1", "pods"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "Event": ("/api/v1", "events"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "Job": ("/apis/batch/v1", "jobs"),
    "BenchmarkSweep": ("/apis/goodput.dev/v1alpha1", "benchmarksweeps"),
}


class Rest:
    """One client for all threads. Every call has a deadline, and raises `ApiError` for anything but success."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    @classmethod
    def connect(cls) -> Rest:
        """Sign in as the pod does, or as KUBECONFIG says where there is no pod."""
        settings: Any = Configuration()
        settings.connection_pool_maxsize = POOL_SIZE
        loader: Any = config
        try:
            loader.load_incluster_config(client_configuration=settings)
        except config.ConfigException:
            loader.load_kube_config(client_configuration=settings)
        return cls(ApiClient(settings))

    def json(self, method: str, path: str, body: object = None, **query: object) -> dict[str, Any]:
        """The answer as JSON."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        found: dict[str, Any] = json.loads(
            self._call(method, path, body, query, accept="application/json", content=kind)
        )
        return found

    def text(self, path: str, **query: object) -> str:
        """The answer as text, such as a log."""
        return self._call("GET", path, None, query, accept="*/*").decode(errors="replace")

    def _call(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, object],
        *,
        accept: str,
        content: str = "application/json",
    ) -> bytes:
        client: Any = self._client  # generated, untyped
        request = client.param_serialize(
            method=method,
            resource_path=path,
            query_params=[(key, value) for key, value in query.items() if value is not None],
            header_params={"Accept": accept, "Content-Type": content},
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            answer = client.call_api(*request, _request_timeout=(CONNECT_SECONDS, READ_SECONDS))
            answer.read()
        except (OpenApiException, HTTPError, OSError) as error:
            raise ApiError(f"{method} {path}: {error}", getattr(error, "status", None)) from error
        if not 200 <= answer.status <= 299:
            raise ApiError(f"{method} {path}: {_reason(answer.data)}", answer.status)
        data: bytes = answer.data
        return data


def path_of(kind: str, namespace: str, name: str | None = None, sub: str | None = None) -> str:
    """Path of one object, or of all of a kind in a namespace."""
    prefix, plural = PATHS[kind]
    parts = [prefix, "namespaces", namespace, plural, *([name] if name else []), *([sub] if sub else [])]
    return "/".join(parts)


def _reason(data: bytes) -> str:
    try:
        return str(json.loads(data)["message"])
    except (ValueError, KeyError, TypeError):
        return data[:300].decode(errors="replace")
