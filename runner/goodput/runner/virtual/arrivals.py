"""When requests are sent in virtual time, and where the window's edges are. Times are ns from the cell's start.

The rules are those of the load client (`load.arrivals`, `load.hot`): one schedule for the open loop; a closed loop
whose window opens when its first requests have ended, and whose next request follows the end of one.
"""

from __future__ import annotations

import heapq
from typing import Protocol

from goodput.runner.contract import PlannedLoad
from goodput.runner.load.arrivals import BACK_OFF_NS
from goodput.runner.load.processes import NANOSECONDS
from goodput.runner.load.schedule import Schedule


class Arrivals(Protocol):
    """Source of due requests.

    Attributes:
        opened_ns: the window's start; None: not known yet.
        closed_ns: its end; None: not known yet.
        limit_ns: when the cell ends at the latest; None: not known yet.
    """

    opened_ns: int | None
    closed_ns: int | None

    @property
    def limit_ns(self) -> int | None: ...  # noqa: D102  # see above

    def due(self) -> int | None:
        """Planned time of the next request; None where there is none now."""
        ...

    def take(self) -> int:
        """The next request's planned time."""
        ...

    def ended(self, index: int, now_ns: int, *, failed: bool) -> None:
        """A request has ended, however."""
        ...


class OpenLoop:
    """Planned times, whatever the server does."""

    def __init__(self, schedule: Schedule) -> None:
        self._times = schedule.planned_ns.tolist()
        self._next = 0
        self.opened_ns: int | None = schedule.opened_ns
        self.closed_ns: int | None = schedule.closed_ns
        self.limit_ns: int | None = schedule.deadline_ns

    def due(self) -> int | None:
        """See `Arrivals`."""
        return self._times[self._next] if self._next < len(self._times) else None

    def take(self) -> int:
        """See `Arrivals`."""
        self._next += 1
        return int(self._times[self._next - 1])

    def ended(self, index: int, now_ns: int, *, failed: bool) -> None:
        """Nothing follows from an end."""


class ClosedLoop:
    """A fixed number of slots.

    An answer's end and the next request are never the same moment, nor are two requests: each comes one nanosecond
    after another, so that a busy engine has begun its next step by then, as it has for a client behind a network.
    """

    def __init__(self, planned: PlannedLoad) -> None:
        load = planned.load
        self._initial = load.concurrency or 1
        self._slots = list(range(self._initial))
        self._last = self._initial - 1
        self._first_ended = self._window_taken = 0
        self._window_ns = None if load.window_seconds is None else round(load.window_seconds * NANOSECONDS)
        self._window_requests = load.window_requests
        self._drain_ns = round(planned.drain_seconds * NANOSECONDS)
        self._lead_in_ns = round(planned.lead_in_seconds * NANOSECONDS)
        self.opened_ns: int | None = None
        self.closed_ns: int | None = None

    @property
    def limit_ns(self) -> int | None:
        """See `Arrivals`: the first requests must end within lead-in and drain time, the window's within the latter."""
        if self.opened_ns is None:
            return self._lead_in_ns + self._drain_ns
        return None if self.closed_ns is None else self.closed_ns + self._drain_ns

    def due(self) -> int | None:
        """See `Arrivals`."""
        return self._slots[0] if self._slots else None

    def take(self) -> int:
        """See `Arrivals`."""
        planned = heapq.heappop(self._slots)
        if self.opened_ns is not None and planned >= self.opened_ns:
            self._window_taken += 1
            if self._window_requests is not None and self._window_taken == self._window_requests + 1:
                self.closed_ns = planned
        return planned

    def ended(self, index: int, now_ns: int, *, failed: bool) -> None:
        """Free the slot; the last of the first requests opens the window."""
        self._last = max(self._last, now_ns) + 1
        heapq.heappush(self._slots, now_ns + BACK_OFF_NS if failed else self._last)
        if index < self._initial:
            self._first_ended += 1
            if self._first_ended == self._initial:
                self.opened_ns = now_ns
                self.closed_ns = None if self._window_ns is None else now_ns + self._window_ns


def arrivals(planned: PlannedLoad, schedule: Schedule | None) -> Arrivals:
    """Of a load: open loop where there is a schedule."""
    return ClosedLoop(planned) if schedule is None else OpenLoop(schedule)
