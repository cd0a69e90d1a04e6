"""Where the load goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from goodput.analysis.schema import Endpoint
from goodput.runner.load.errors import TargetError

PATHS: dict[Endpoint, str] = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}


@dataclass(frozen=True)
class Target:
    """An OpenAI-compatible endpoint. ``headers`` may hold a key: they are never written to a file."""

    host: str
    port: int
    path: str
    model: str
    endpoint: Endpoint
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, url: str, model: str, endpoint: Endpoint, headers: Mapping[str, str] | None = None) -> Target:
        """The endpoint below a server's URL, e.g. ``http://10.0.0.7:8000``. Proxies are never used.

        Raises:
            TargetError: not http, or no host.
        """
        parts = urlsplit(url)
        if parts.scheme == "https":
            raise TargetError(f"{url}: the load client speaks http only; give the server's own address")
        if parts.scheme != "http" or not parts.hostname:
            raise TargetError(f"{url}: expected http://HOST:PORT")
        try:
            port = parts.port or 80
        except ValueError as error:
            raise TargetError(f"{url}: {error}") from error
        path = parts.path.rstrip("/").removesuffix("/v1") + PATHS[endpoint]
        return cls(parts.hostname, port, path, model, endpoint, dict(headers or {}))
