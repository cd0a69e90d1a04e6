"""What the golden server knows of each request, in seconds of CLOCK_MONOTONIC (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.peers.base import Answer

_EARLY_SECONDS = 0.001  # that a client's word for "sent" may lie after the arrival: two clocks, two stamps


@dataclass(frozen=True)
class Served:
    """One request as the server saw it.

    Attributes:
        failure: no client may call this a success.
        arrived: its last byte, by the kernel's stamp where there is one.
        tokens: stamp of each token, taken before the system call that sent it.
        ended: None: it was still under way.
    """

    name: str
    failure: bool
    arrived: float
    tokens: tuple[float, ...]
    ended: float | None

    @property
    def ttft(self) -> float | None:
        """From the arrival to the first token's send."""
        return self.tokens[0] - self.arrived if self.tokens else None

    @property
    def gaps(self) -> tuple[float, ...]:
        """Between the tokens' sends."""
        return tuple(later - earlier for earlier, later in zip(self.tokens, self.tokens[1:], strict=False))


def served(rows: Iterable[dict[str, Any]]) -> list[Served]:
    """The golden server's rows by arrival; a connection closed before it was used for a request is none."""
    found = [_served(row) for row in rows if row["ended"] != "stale"]
    return sorted(found, key=lambda row: row.arrived)


def _served(row: dict[str, Any]) -> Served:
    stamps = [before / 1e9 for tokens, before, *_ in row["sends"] for _ in range(tokens)]
    ended = row["ended_ns"]
    return Served(
        name=row["name"],
        failure=row["verdict"] == "failure",
        arrived=row["arrived_ns"] / 1e9,
        tokens=tuple(stamps),
        ended=None if ended is None else ended / 1e9,
    )


def match(answers: Sequence[Answer], rows: Sequence[Served]) -> list[tuple[Answer, Served]]:
    """Which answer speaks of which request: each takes the first free one that arrived after it was sent.

    No client hands its requests' numbers through to its results. Requests that are sent within the same moment
    may be taken for one another: their truths are alike. Answers without a time are left out.
    """
    timed = sorted((answer for answer in answers if answer.started is not None), key=lambda a: a.started or 0.0)
    pairs: list[tuple[Answer, Served]] = []
    at = 0
    for answer in timed:
        assert answer.started is not None
        while at < len(rows) and rows[at].arrived < answer.started - _EARLY_SECONDS:
            at += 1
        if at == len(rows):
            break
        pairs.append((answer, rows[at]))
        at += 1
    return pairs
