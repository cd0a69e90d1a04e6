"""A request under way in virtual time, and what is made of it when it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from goodput.analysis.schema.base import RequestOutcome
from goodput.runner.load.parse import Parsed
from goodput.runner.load.tokens import Arrived


@dataclass(slots=True)
class Exchange:
    """A request under way; stamps of its tokens are absolute."""

    index: int
    planned_ns: int
    output_tokens: int
    prompt_tokens: int
    stamps: list[int] = field(default_factory=list)


def parsed(exchange: Exchange, end_ns: int, outcome: RequestOutcome, reason: str | None) -> Parsed:
    """What became of it, as the load client reads it from a server that sends every token alone, with usage."""
    stamps = exchange.stamps
    count, arrived = len(stamps), _arrived(stamps)
    return Parsed(
        outcome=outcome,
        reason=reason,
        status=200 if reason != "Http400" else 400,
        first_ns=stamps[0] if stamps else None,
        last_ns=stamps[-1] if stamps else None,
        end_ns=end_ns,
        prompt_tokens=exchange.prompt_tokens if stamps else None,
        output_tokens=count or None,
        source="continuous_usage" if stamps else "none",
        gaps=arrived.gaps(),
        arrived=arrived,
        kernel=False,
        events=count,
    )


def _arrived(stamps: Sequence[int]) -> Arrived:
    """Single tokens at these times."""
    arrived = Arrived()
    arrived.singles(stamps, [1] * len(stamps))
    return arrived
