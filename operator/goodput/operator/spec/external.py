"""Servers that run already: what a spec may say of them, and where their key and authority come from (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from goodput.operator.spec.base import SecretKeyRef
from goodput.operator.spec.engine import EngineSpec

_PREFIX = "GOODPUT_"


def secret_variable(ref: SecretKeyRef) -> str:
    """Environment variable that stands for a key of a Secret: ``{name: gateway, key: token}`` is GOODPUT_GATEWAY_TOKEN.

    The API key is its value, of an authority it holds the path of a PEM file. In a cluster the operator sets the
    key's variable in the runner's pod; on one machine both are taken from the shell.
    """
    return _PREFIX + re.sub(r"[^A-Z0-9]", "_", f"{ref.name}_{ref.key}".upper())


def address(engine: EngineSpec) -> str | None:
    """The external server's address in one spelling, without ``/v1``; None for engines that are started."""
    if engine.external is None:
        return None
    scheme, _, rest = engine.external.url.rstrip("/").removesuffix("/v1").partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}://{host.lower()}{slash}{path}".rstrip("/")


def unusable(engine: EngineSpec) -> Iterator[str]:
    """Fields that are about starting a server, of an engine that is not started."""
    started = EngineSpec(name=engine.name, kind="simulated")
    for name, field in EngineSpec.model_fields.items():
        if name not in {"name", "kind", "external"} and getattr(engine, name) != getattr(started, name):
            yield field.alias or name
