"""When tokens arrived: reads with their number of tokens, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Gaps(NamedTuple):
    """Inter-token gaps of one request, in ns. A read's gap is divided over its tokens and counts once for each."""

    total_ns: int
    tokens: int
    highest_ns: float
    each_ns: NDArray[np.float64]  # by read, from the second on
    counts: NDArray[np.int64]  # tokens of that read


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

    def singles(self, stamps: Sequence[int], tokens: Sequence[int]) -> None:
        """Reads that hold one event each, with so many tokens, and nothing else; 0: it carries none."""
        self.total += sum(tokens)
        if 0 in tokens:
            stamps = [stamp for stamp, carried in zip(stamps, tokens, strict=True) if carried]
            tokens = [carried for carried in tokens if carried]
        self.stamps += stamps
        self.counts += tokens

    def next_read(self) -> None:
        """What follows comes from another read."""
        self._events = 0

    def gaps(self) -> Gaps | None:
        """The gaps; None where all tokens came in one read."""
        if len(self.stamps) < 2:
            return None
        counts = np.array(self.counts[1:], dtype=np.int64)
        stamps = np.array(self.stamps, dtype=np.int64)
        each = (stamps[1:] - stamps[:-1]) / counts
        return Gaps(
            total_ns=self.stamps[-1] - self.stamps[0],
            tokens=self.total - self.counts[0],
            highest_ns=float(each.max()),
            each_ns=each,
            counts=counts,
        )

    def within(self, opened_ns: int, closed_ns: int) -> int:
        """Tokens whose stamp lies in [opened, closed)."""
        if not self.stamps or self.stamps[0] >= closed_ns or self.stamps[-1] < opened_ns:
            return 0
        if self.stamps[0] >= opened_ns and self.stamps[-1] < closed_ns:
            return self.total
        return sum(
            count for stamp, count in zip(self.stamps, self.counts, strict=True) if opened_ns <= stamp < closed_ns
        )
