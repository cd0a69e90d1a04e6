"""Which request is due next in one worker, and where the window's edges are (standard library only).

Times are ns from the cell's start. Both kinds deal requests round robin: worker w of P takes w, w + P, …
"""

from __future__ import annotations

import heapq
from array import array
from pathlib import Path
from typing import Protocol

from goodput.runner.load.job import PLANNED, Job, Live

BACK_OFF_NS = 100_000_000  # a closed loop's slot waits this long after a failure, else a dead server is flooded


class Arrivals(Protocol):
    """Source of due requests.

    Attributes:
        opened_ns: the window's start; None: not known yet.
        closed_ns: its end; None: not known yet.
        changed: a request may have become due that was not foreseen; the caller takes it back.
    """

    opened_ns: int | None
    closed_ns: int | None
    changed: bool

    def due(self) -> int | None:
        """Planned time of the next request; None where there is none now."""
        ...

    def take(self) -> tuple[int, int]:
        """The next request and its planned time."""
        ...

    def ended(self, index: int, now_ns: int, *, failed: bool) -> None:
        """A request has ended, however."""
        ...

    def look(self, now_ns: int) -> None:
        """Bring the window's edges up to date."""
        ...


class OpenLoop:
    """Planned times, whatever the server does. Beyond the drawn ones nothing is due: the deadline comes first."""

    def __init__(self, job: Job, folder: Path, worker: int) -> None:
        planned = array("q")
        planned.frombytes((folder / PLANNED).read_bytes())
        self._planned = planned[worker :: job.processes]
        self._worker, self._step, self._next = worker, job.processes, 0
        self.opened_ns: int | None = job.opened_ns
        self.closed_ns: int | None = job.closed_ns
        self.changed = False

    def due(self) -> int | None:
        """See `Arrivals`."""
        return self._planned[self._next] if self._next < len(self._planned) else None

    def take(self) -> tuple[int, int]:
        """See `Arrivals`."""
        planned = self._planned[self._next]
        index = self._worker + self._step * self._next
        self._next += 1
        return index, planned

    def ended(self, index: int, now_ns: int, *, failed: bool) -> None:
        """Nothing follows from an end."""

    def look(self, now_ns: int) -> None:
        """The edges are planned."""


class ClosedLoop:
    """A fixed number of slots: the end of a request plans the next one.

    The window opens when the first ``concurrency`` requests have all ended. Worker 0 sets the edges for all.
    """

    def __init__(self, job: Job, live: Live, worker: int) -> None:
        if job.concurrency is None:
            raise ValueError("a closed loop needs a concurrency")
        self._job, self._live, self._worker = job, live, worker
        self._slots = [0] * slots(job.concurrency, job.processes, worker)
        self._initial = len(self._slots)
        self._taken = self._window_taken = 0
        self.opened_ns: int | None = None
        self.closed_ns: int | None = None
        self.changed = False

    def due(self) -> int | None:
        """See `Arrivals`."""
        return self._slots[0] if self._slots else None

    def take(self) -> tuple[int, int]:
        """See `Arrivals`."""
        planned = heapq.heappop(self._slots)
        index = self._worker + self._job.processes * self._taken
        self._taken += 1
        if self.opened_ns is not None and planned >= self.opened_ns:
            self._window_taken += 1
            self._live.cells[Live.row(self._worker) + Live.WINDOW_SENT] = self._window_taken
        return index, planned

    def ended(self, index: int, now_ns: int, *, failed: bool) -> None:
        """Free the slot."""
        heapq.heappush(self._slots, now_ns + (BACK_OFF_NS if failed else 0))
        self.changed = True
        if index // self._job.processes < self._initial:
            self._live.cells[Live.row(self._worker) + Live.FIRST_ENDED] += 1

    def look(self, now_ns: int) -> None:
        """Open and close the window, or see that worker 0 did."""
        cells = self._live.cells
        if self.opened_ns is None:
            if self._worker == 0 and self._live.total(Live.FIRST_ENDED) >= (self._job.concurrency or 0):
                cells[Live.OPENED] = now_ns
            self.opened_ns = cells[Live.OPENED] or None
        elif self.closed_ns is None:
            if self._job.window_ns is not None:
                cells[Live.CLOSED] = self.opened_ns + self._job.window_ns
            elif self._worker == 0 and self._live.total(Live.WINDOW_SENT) > (self._job.window_requests or 0):
                cells[Live.CLOSED] = now_ns
            self.closed_ns = cells[Live.CLOSED] or None


def slots(concurrency: int, processes: int, worker: int) -> int:
    """A worker's share of the concurrency."""
    return concurrency // processes + (1 if worker < concurrency % processes else 0)
