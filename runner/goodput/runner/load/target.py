"""Where the load goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from goodput.analysis.schema.base import Endpoint
from goodput.runner.load.errors import TargetError

PATHS: dict[Endpoint, str] = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}


DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Target:
    """An OpenAI-compatible endpoint. ``headers`` may hold a key: they are never written to a file.

    Attributes:
        ca_file: PEM of the only authorities that are trusted with ``tls``; None: the system's store.
    """

    host: str
    port: int
    path: str
    model: str
    endpoint: Endpoint
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: bool = False
    ca_file: str | None = None

    @classmethod
    def of(
        cls,
        url: str,
        model: str,
        endpoint: Endpoint,
        headers: Mapping[str, str] | None = None,
        *,
        ca_file: str | None = None,
    ) -> Target:
        """The endpoint below a server's URL, e.g. ``http://10.0.0.7:8000``. Proxies are never used.

        Raises:
            TargetError: neither http nor https, no host, or with something that does not belong there.
        """
        try:
            parts = urlsplit(url)
            port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
        except ValueError as error:
            raise TargetError(f"{url}: {error}") from error
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise TargetError(f"{url}: expected http://HOST:PORT or https://HOST:PORT")
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise TargetError(f"the URL of {parts.hostname}: no user, password, query or fragment may be in it")
        path = parts.path.rstrip("/").removesuffix("/v1") + PATHS[endpoint]
        tls = parts.scheme == "https"
        return cls(parts.hostname, port, path, model, endpoint, dict(headers or {}), tls, ca_file if tls else None)

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"
