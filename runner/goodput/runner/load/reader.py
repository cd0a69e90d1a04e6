"""Turns the records of spools into rows and sums. Memory holds the open requests and the columns of the ended ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from goodput.runner.load import spool
from goodput.runner.load.errors import SpoolError
from goodput.runner.load.parse import CountTokens, Parsed
from goodput.runner.load.records import GapHistogram, RequestRecord, Rows
from goodput.runner.load.responses import Responses

Sent = NDArray[np.void]


@dataclass(frozen=True)
class Edges:
    """The window in ns from the cell's start; ``known`` is False where it never opened."""

    opened: int
    closed: int
    known: bool


@dataclass
class Totals:
    """Sums over all requests while the spool is read."""

    rows: Rows = field(default_factory=Rows)
    gaps: GapHistogram = field(default_factory=GapHistogram)
    events: int = 0
    reads: int = 0
    coalesced: int = 0
    requests: int = 0
    output_tokens: int = 0
    prompt_tokens: int = 0
    reported: int = 0  # prompt tokens of the window as the server counts them, and as asked
    asked: int = 0
    kernel: bool = True


class Taken:
    """Planned and sent time, ns from the cell's start, of each request that a worker took up; sent -1: never."""

    def __init__(self, sent: Sent) -> None:
        size = int(sent["request"].max()) + 1 if len(sent) else 0
        self._planned, self._sent = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        self._known = np.zeros(size, dtype=np.bool_)
        requests = sent["request"]
        self._planned[requests], self._sent[requests], self._known[requests] = sent["planned"], sent["sent"], True

    def __contains__(self, request: int) -> bool:
        return request < len(self._known) and bool(self._known[request])

    def __getitem__(self, request: int) -> tuple[int, int]:
        if request not in self:
            raise SpoolError(f"request {request} has bytes in the spool and no line in the send log")
        return int(self._planned[request]), int(self._sent[request])


class Asking(Protocol):
    """What each request asked for."""

    def prompt_tokens(self, request: int) -> int:
        """Asked length of the prompt."""
        ...

    def output_tokens(self, request: int) -> int:
        """Asked length of the output."""
        ...


class Reader:
    """Turns spool records into rows."""

    def __init__(self, recorder: Recorder, taken: Taken, asks: Asking) -> None:
        self._recorder, self._taken, self._asks = recorder, taken, asks

    def read(self, path: Path, clock_offset_ns: int, count_tokens: CountTokens | None) -> None:
        """One worker's spool."""
        responses = Responses(self._asks.output_tokens, count_tokens)
        for request, parsed in responses.take(spool.read_spool(path, clock_offset_ns)):
            self._recorder.add(request, *self._taken[request], parsed)
        self._recorder.totals.reads += responses.reads
        if responses.open:
            raise SpoolError(f"{path.name}: {len(responses.open)} requests have no end")


class Recorder:
    """Adds what became of each request to rows and sums.

    Args:
        start_ns: the cell's start, CLOCK_MONOTONIC.
        edges: of its window.
        asks: what was asked for.
        virtual: stamps are those of a simulated clock.
    """

    def __init__(self, start_ns: int, edges: Edges, asks: Asking, *, virtual: bool = False) -> None:
        self.totals = Totals()
        self._start, self._edges, self._asks, self._virtual = start_ns, edges, asks, virtual

    def missing(self, arrivals: Iterator[tuple[int, int]]) -> None:
        """Planned arrivals that were never taken: the cell was ended before."""
        for request, planned_ns in arrivals:
            self.totals.rows.add(
                RequestRecord(
                    request=request,
                    planned_s=planned_ns / 1e9,
                    sent_s=None,
                    first_s=None,
                    last_s=None,
                    end_s=None,
                    prompt_tokens=self._asks.prompt_tokens(request),
                    output_tokens=None,
                    token_source="none",  # noqa: S106 (tokens of text, no secret)
                    outcome="not_sent",
                    reason="Stopped",
                    in_window=self._inside(planned_ns),
                    itl_max_s=None,
                    itl_sum_s=None,
                    itl_count=None,
                    stamp_source="none",
                    coalesced_reads=0,
                    answer_s=None,
                )
            )

    def _inside(self, planned_ns: int) -> bool:
        return self._edges.known and self._edges.opened <= planned_ns < self._edges.closed

    def add(self, request: int, planned_ns: int, sent_ns: int, parsed: Parsed) -> None:
        """A request that has ended. Planned and sent: ns from the cell's start; sent -1: never."""
        inside, asked = self._inside(planned_ns), self._asks.prompt_tokens(request)
        gaps = parsed.gaps

        def seconds(stamp: int | None) -> float | None:
            return None if stamp is None else (stamp - self._start) / 1e9

        record = RequestRecord(
            request=request,
            planned_s=planned_ns / 1e9,
            sent_s=sent_ns / 1e9 if sent_ns >= 0 else None,
            first_s=seconds(parsed.first_ns),
            last_s=seconds(parsed.last_ns),
            end_s=seconds(parsed.end_ns),
            prompt_tokens=asked if parsed.prompt_tokens is None else parsed.prompt_tokens,
            output_tokens=parsed.output_tokens,
            token_source=parsed.source,
            outcome=parsed.outcome,
            reason=parsed.reason,
            in_window=inside,
            itl_max_s=None if gaps is None else gaps.highest_ns / 1e9,
            itl_sum_s=None if gaps is None else gaps.total_ns / 1e9,
            itl_count=None if gaps is None else gaps.tokens,
            stamp_source="none" if parsed.first_ns is None else self._stamps(parsed),
            coalesced_reads=parsed.arrived.coalesced,
            answer_s=seconds(parsed.answer_ns),
        )
        self.totals.rows.add(record)
        self._add(record, parsed, asked)

    def _stamps(self, parsed: Parsed) -> str:
        if self._virtual:
            return "virtual"
        return "kernel" if parsed.kernel else "user"

    def _add(self, record: RequestRecord, parsed: Parsed, asked: int) -> None:
        totals, edges = self.totals, self._edges
        totals.coalesced += parsed.arrived.coalesced
        totals.kernel = totals.kernel and (parsed.kernel or parsed.first_ns is None)
        totals.events += parsed.events
        opened, closed = self._start + edges.opened, self._start + edges.closed
        totals.output_tokens += parsed.delivered(opened, closed)
        if parsed.first_ns is not None and opened <= parsed.first_ns < closed:
            totals.prompt_tokens += record.prompt_tokens
        completed = record.outcome == "completed"
        if completed and parsed.last_ns is not None and opened <= parsed.last_ns < closed:
            totals.requests += 1
        if record.in_window and completed:
            if parsed.gaps is not None:
                totals.gaps.add(parsed.gaps.each_ns, parsed.gaps.counts)
            if parsed.prompt_tokens is not None:
                totals.reported += parsed.prompt_tokens
                totals.asked += asked
