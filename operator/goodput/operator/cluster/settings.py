"""What the operator is told when it starts: where it works, and which images it uses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Images:
    """Images of what the operator starts, where the sweep names none."""

    runner: str
    analysis: str
    engines: str  # of the simulated engine


@dataclass(frozen=True)
class OperatorSettings:
    """One operator: namespaces (empty: all), images, and the port of /metrics and /healthz (0: any free one)."""

    images: Images
    namespaces: tuple[str, ...] = ()
    port: int = 8080
