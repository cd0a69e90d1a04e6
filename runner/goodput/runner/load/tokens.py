"""When tokens arrived: reads with their number of tokens, and what follows from them."""

from __future__ import annotations

from typing import NamedTuple


class Gaps(NamedTuple):
    """Inter-token gaps of one request, in ns. Each gap between reads counts once per token of the later read."""

    total_ns: int
    tokens: int
    highest_ns: float
    parts: list[tuple[float, int]]  # (gap divided over the tokens, tokens)


class Arrived:
    """Stamps of the reads that carried tokens, in order, with their number of tokens.

    Attributes:
        total: tokens so far.
        coalesced: reads that held more than one token-carrying event: all got the last segment's stamp.
    """

    __slots__ = ("_events", "coalesced", "counts", "stamps", "total")

    def __init__(self) -> None:
        self.stamps: list[int] = []
        self.counts: list[int] = []
        self.total = self.coalesced = self._events = 0

    def add(self, stamp: int, tokens: int) -> None:
        """A token-carrying event that was complete with the read of that stamp."""
        self.total += tokens
        self._events += 1
        if self.stamps and self._events > 1:
            self.counts[-1] += tokens
            self.coalesced += self._events == 2
        else:
            self.stamps.append(stamp)
            self.counts.append(tokens)

    def next_read(self) -> None:
        """What follows comes from another read."""
        self._events = 0

    def gaps(self) -> Gaps | None:
        """The gaps; None where all tokens came in one read."""
        if len(self.stamps) < 2:
            return None
        parts = []
        for before, stamp, count in zip(self.stamps, self.stamps[1:], self.counts[1:], strict=False):
            parts.append(((stamp - before) / count, count))
        return Gaps(
            total_ns=self.stamps[-1] - self.stamps[0],
            tokens=sum(self.counts[1:]),
            highest_ns=max(gap for gap, _ in parts),
            parts=parts,
        )

    def within(self, opened_ns: int, closed_ns: int) -> int:
        """Tokens whose stamp lies in [opened, closed)."""
        if not self.stamps or self.stamps[0] >= closed_ns or self.stamps[-1] < opened_ns:
            return 0
        return sum(
            count for stamp, count in zip(self.stamps, self.counts, strict=True) if opened_ns <= stamp < closed_ns
        )
