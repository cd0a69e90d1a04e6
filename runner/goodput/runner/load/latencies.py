"""Histograms of a cell's latencies: completed requests that arrived in the window."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from goodput.analysis.schema.base import Document
from goodput.analysis.schema.cell import LogHistogram
from goodput.runner.load.parse import Parsed
from goodput.runner.load.records import GapHistogram

_ONCE = np.ones(1, dtype=np.int64)
LATENCIES = ("ttft", "tpot", "itl", "e2e")


class Followed(Document):
    """What a follower has seen of the window so far."""

    ended: int = 0  # requests of the whole cell
    outcomes: dict[str, int] = Field(default_factory=dict)  # of the window's requests that have ended
    ttft: LogHistogram = LogHistogram()
    tpot: LogHistogram = LogHistogram()
    itl: LogHistogram = LogHistogram()
    e2e: LogHistogram = LogHistogram()


class Latencies:
    """Adds up requests, one by one."""

    def __init__(self) -> None:
        self._ended = 0
        self._outcomes: dict[str, int] = {}
        self._histograms = {name: GapHistogram() for name in LATENCIES}

    def add(self, parsed: Parsed, sent_ns: int, *, in_window: bool) -> None:
        """A request that has ended.

        Args:
            parsed: what became of it.
            sent_ns: absolute CLOCK_MONOTONIC.
            in_window: its planned time lies in the window.
        """
        self._ended += 1
        if not in_window:
            return
        self._outcomes[parsed.outcome] = self._outcomes.get(parsed.outcome, 0) + 1
        if parsed.outcome != "completed" or parsed.first_ns is None or parsed.last_ns is None:
            return
        histograms, tokens = self._histograms, parsed.output_tokens
        histograms["ttft"].add(np.array([parsed.first_ns - sent_ns], dtype=np.float64), _ONCE)
        histograms["e2e"].add(np.array([parsed.last_ns - sent_ns], dtype=np.float64), _ONCE)
        if tokens is not None and tokens > 1:
            each_ns = (parsed.last_ns - parsed.first_ns) / (tokens - 1)
            histograms["tpot"].add(np.array([each_ns]), _ONCE)
        if parsed.gaps is not None:
            histograms["itl"].add(parsed.gaps.each_ns, parsed.gaps.counts)

    def document(self) -> Followed:
        """What was added so far."""
        histograms = {name: each.document() for name, each in self._histograms.items()}
        return Followed(ended=self._ended, outcomes=dict(sorted(self._outcomes.items())), **histograms)
