"""A sweep's clock: when it began and how long it was suspended. Kept in its status, in RFC 3339 and seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime


def timestamp(seconds: float) -> str:
    """Unix seconds as Kubernetes writes times: ``2026-11-30T06:00:00Z``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: object) -> float | None:
    """The reverse; None for anything that is not a time."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


@dataclass(frozen=True)
class Clock:
    """Unix seconds, but for ``suspended_seconds``: the sum over suspensions that have ended."""

    started: float
    suspended: float | None = None  # since when it is suspended now
    suspended_seconds: float = 0.0

    @classmethod
    def read(cls, status: Mapping[str, object], now: float) -> Clock:
        """The clock of a status; one that starts now where there is none yet."""
        started = parse_timestamp(status.get("startedAt"))
        seconds = status.get("suspendedSeconds")
        return cls(
            started=now if started is None else started,
            suspended=parse_timestamp(status.get("suspendedAt")),
            suspended_seconds=float(seconds) if isinstance(seconds, (int, float)) else 0.0,
        )

    def turned(self, *, suspend: bool, now: float) -> Clock:
        """The clock after the present wish: suspended from now on, or going on from now on."""
        if suspend:
            return self if self.suspended is not None else replace(self, suspended=now)
        if self.suspended is None:
            return self
        total = self.suspended_seconds + max(0.0, now - self.suspended)
        return replace(self, suspended=None, suspended_seconds=total)

    def active_seconds(self, now: float) -> float:
        """Unsuspended time since the start."""
        until = now if self.suspended is None else self.suspended
        return max(0.0, until - self.started - self.suspended_seconds)

    def write(self) -> dict[str, object]:
        """The fields of status."""
        status: dict[str, object] = {"startedAt": timestamp(self.started)}
        if self.suspended is not None:
            status["suspendedAt"] = timestamp(self.suspended)
        if self.suspended_seconds:
            status["suspendedSeconds"] = round(self.suspended_seconds)
        return status
