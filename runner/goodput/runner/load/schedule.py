"""When requests are sent: the part of a load's stream of arrivals that a cell may need (pure).

A cell has a lead-in [0, opened), a window [opened, closed) and a tail. The stream itself knows nothing of
these: lengthening the window never moves an arrival. A closed loop has no times: the server's answers make them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from goodput.runner.contract import PlannedLoad
from goodput.runner.load.errors import ScheduleError
from goodput.runner.load.processes import NANOSECONDS, Times, arrivals


@dataclass(frozen=True)
class Schedule:
    """The drawn part of an open loop: lead-in, window and as much tail as the drain deadline allows.

    Attributes:
        planned_ns: all arrivals before ``deadline_ns``, ascending, ns from the cell's start.
        first: index of the window's first arrival.
        last: one behind the index of the window's last arrival.
        opened_ns: the window's start.
        closed_ns: its end; with a window by count the planned time of arrival N + 1. No arrival is planned
            behind a burst: 1.
        deadline_ns: when requests that are still open are closed.
    """

    planned_ns: Times
    first: int
    last: int
    opened_ns: int
    closed_ns: int
    deadline_ns: int


class _Drawn:
    """The stream as far as it was needed."""

    def __init__(self, stream: Iterator[Times]) -> None:
        self._stream = stream
        self._batches: list[Times] = []

    def more(self) -> bool:
        """Draw one more batch; False at the stream's end (of a trace)."""
        batch = next(self._stream, None)
        if batch is None:
            return False
        self._batches.append(batch)
        return True

    def until(self, time_ns: int) -> bool:
        """Draw until an arrival is not before that time."""
        while not self._batches or not self._batches[-1].size or self._batches[-1][-1] < time_ns:
            if not self.more():
                return False
        return True

    def since(self, time_ns: int) -> int:
        """Arrivals so far that are not before that time."""
        return sum(int(np.count_nonzero(batch >= time_ns)) for batch in self._batches)

    def times(self) -> Times:
        """All so far."""
        return np.concatenate(self._batches) if self._batches else np.empty(0, dtype=np.int64)


def draw(plan: PlannedLoad, replayed: Times | None = None) -> Schedule:
    """The arrivals of an open loop up to its drain deadline.

    Args:
        plan: the load with seed, lead-in and drain time.
        replayed: of ``arrival: replay``: the trace's own times, already at the planned speed.

    Raises:
        ScheduleError: the trace ends before the window does.
    """
    load = plan.load
    if load.arrival == "burst":
        return _burst(plan)
    replays = load.arrival == "replay"
    if replays and replayed is None:
        raise ScheduleError("a replay needs the times of a trace")
    opened = round(plan.lead_in_seconds * NANOSECONDS)
    stream = arrivals(load, plan.seed, lead_in_seconds=plan.lead_in_seconds)
    drawn = _Drawn(iter([replayed]) if replays and replayed is not None else stream)
    closed = _closed(plan, opened, drawn)
    deadline = closed + round(plan.drain_seconds * NANOSECONDS)
    drawn.until(deadline)
    times = drawn.times()
    times = times[: int(np.searchsorted(times, deadline))]
    first = int(np.searchsorted(times, opened))
    last = int(np.searchsorted(times, closed))
    if load.window_requests is not None:
        last = first + load.window_requests  # equal times at the edge: the count decides
    return Schedule(times, first, last, opened, closed, deadline)


def _closed(plan: PlannedLoad, opened: int, drawn: _Drawn) -> int:
    """The window's end, which the stream must reach."""
    load = plan.load
    if load.window_requests is not None:
        reached = drawn.until(opened)
        while reached and drawn.since(opened) <= load.window_requests:
            reached = drawn.more()
        if not reached:
            raise _short(plan, drawn, f"{load.window_requests + 1} arrivals behind {plan.lead_in_seconds:g} s")
        times = drawn.times()
        return int(times[int(np.searchsorted(times, opened)) + load.window_requests])
    if load.window_seconds is None:
        raise ValueError("a load needs a window by duration or by count")
    closed = opened + round(load.window_seconds * NANOSECONDS)
    if not drawn.until(closed):
        raise _short(plan, drawn, f"{closed / NANOSECONDS:g} s")
    return closed


def _short(plan: PlannedLoad, drawn: _Drawn, needed: str) -> ScheduleError:
    times = drawn.times()
    length = times[-1] / NANOSECONDS if times.size else 0.0
    return ScheduleError(
        f"the trace lasts {length:g} s at {plan.load.speed:g} times its speed ({len(times)} requests); "
        f"lead-in and window need {needed}: lower the speed, shorten the window, or take a longer trace"
    )


def _burst(plan: PlannedLoad) -> Schedule:
    """All at once at the cell's start; then there is nothing but waiting."""
    if plan.load.window_requests is None:
        raise ValueError("a burst needs its number of requests")
    count = plan.load.window_requests
    deadline = 1 + round(plan.drain_seconds * NANOSECONDS)
    return Schedule(np.zeros(count, dtype=np.int64), 0, count, 0, 1, deadline)


def hashed_requests(plan: PlannedLoad, schedule: Schedule | None) -> int:
    """How many requests, from the first, the content hashes cover: lead-in and window.

    In a closed loop the server decides how many there are; the hashes cover the first ``concurrency``,
    and the counted ones where the window goes by count.
    """
    if schedule is not None:
        return schedule.last
    return (plan.load.concurrency or 0) + (plan.load.window_requests or 0)


def schedule_sha256(schedule: Schedule | None, lengths: Sequence[tuple[int, int]]) -> str:
    """SHA-256 over planned time (int64), prompt and output length (uint32) of each request; little-endian.

    A closed loop's times are -1. ``lengths``: of the `hashed_requests`.
    """
    count = len(lengths)
    rows = np.empty(count, dtype=np.dtype([("planned", "<i8"), ("prompt", "<u4"), ("output", "<u4")]))
    rows["planned"] = -1 if schedule is None else schedule.planned_ns[:count]
    rows["prompt"] = [prompt for prompt, _ in lengths]
    rows["output"] = [output for _, output in lengths]
    return hashlib.sha256(rows.tobytes()).hexdigest()
