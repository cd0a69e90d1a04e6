"""When requests are sent: one endless stream of arrivals per load point, drawn from its seed (pure).

A cell has a lead-in [0, opened), a window [opened, closed) and a tail. The stream itself knows nothing of
these: lengthening the window never moves an arrival. Times are whole nanoseconds from the cell's start, so
that they hash the same everywhere. A closed loop has no times: the server's answers make them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from goodput.analysis.schema import Load
from goodput.runner.contract import PlannedLoad

Times = NDArray[np.int64]
Purpose = Literal["arrivals", "prompts"]

NANOSECONDS = 1_000_000_000
_DRAWN_AT_ONCE = 4096
_SPAWN_KEYS: dict[Purpose, int] = {"arrivals": 0, "prompts": 1}


def seed_sequence(seed: int, purpose: Purpose, index: int | None = None) -> np.random.SeedSequence:
    """The independent child seed of one purpose (and of one prompt), whatever else is drawn."""
    key = (_SPAWN_KEYS[purpose],) if index is None else (_SPAWN_KEYS[purpose], index)
    return np.random.SeedSequence(entropy=seed, spawn_key=key)


@dataclass(frozen=True)
class Schedule:
    """The drawn part of an open loop: lead-in, window and as much tail as the drain deadline allows.

    Attributes:
        planned_ns: all arrivals before ``deadline_ns``, ascending, ns from the cell's start.
        first: index of the window's first arrival.
        last: one behind the index of the window's last arrival.
        opened_ns: the window's start.
        closed_ns: its end; with a window by count the planned time of arrival N + 1.
        deadline_ns: when requests that are still open are closed.
    """

    planned_ns: Times
    first: int
    last: int
    opened_ns: int
    closed_ns: int
    deadline_ns: int


def gaps(load: Load, seed: int) -> Iterator[NDArray[np.float64]]:
    """Gaps between arrivals in seconds, without end, in batches. Mean 1/rate.

    Poisson: exponential by inverse transform. Gamma: shape = burstiness, as `vllm bench serve`
    (1 is Poisson, below 1 is burstier). Constant: the first arrival is at 0.
    """
    if load.request_rate is None:
        raise ValueError("a closed loop has no arrival times")
    mean = 1.0 / load.request_rate
    generator = np.random.Generator(np.random.PCG64(seed_sequence(seed, "arrivals")))
    shape = load.burstiness or 1.0
    while True:
        if load.arrival == "gamma":
            yield generator.standard_gamma(shape, _DRAWN_AT_ONCE) * (mean / shape)
        else:
            yield -np.log1p(-generator.random(_DRAWN_AT_ONCE)) * mean


def arrivals(load: Load, seed: int) -> Iterator[Times]:
    """Planned times, ascending, without end, in batches."""
    if load.arrival == "constant" and load.request_rate is not None:
        first = 0
        while True:
            index = np.arange(first, first + _DRAWN_AT_ONCE, dtype=np.float64)
            yield np.rint(index / load.request_rate * NANOSECONDS).astype(np.int64)
            first += _DRAWN_AT_ONCE
    passed = 0.0
    for batch in gaps(load, seed):
        times = passed + np.cumsum(batch)
        passed = float(times[-1])
        yield np.rint(times * NANOSECONDS).astype(np.int64)


def draw(plan: PlannedLoad) -> Schedule:
    """Draw the arrivals of an open loop up to its drain deadline."""
    load = plan.load
    opened = round(plan.lead_in_seconds * NANOSECONDS)
    stream = arrivals(load, plan.seed)
    batches = [next(stream)]

    def until(time_ns: int) -> None:
        while batches[-1][-1] < time_ns:
            batches.append(next(stream))

    until(opened)
    if load.window_requests is not None:
        while sum(int(np.count_nonzero(b >= opened)) for b in batches) <= load.window_requests:
            batches.append(next(stream))
        times = np.concatenate(batches)
        first = int(np.searchsorted(times, opened))
        closed = int(times[first + load.window_requests])
    elif load.window_seconds is not None:
        closed = opened + round(load.window_seconds * NANOSECONDS)
    else:
        raise ValueError("a load needs a window by duration or by count")
    deadline = closed + round(plan.drain_seconds * NANOSECONDS)
    until(deadline)
    times = np.concatenate(batches)
    times = times[: int(np.searchsorted(times, deadline))]
    first = int(np.searchsorted(times, opened))
    last = int(np.searchsorted(times, closed))
    if load.window_requests is not None:
        last = first + load.window_requests  # equal times at the edge: the count decides
    return Schedule(times, first, last, opened, closed, deadline)


def hashed_requests(plan: PlannedLoad, schedule: Schedule | None) -> int:
    """How many requests, from the first, the content hashes cover: lead-in and window.

    In a closed loop the server decides how many there are; the hashes cover the first ``concurrency``,
    and the counted ones where the window goes by count.
    """
    if schedule is not None:
        return schedule.last
    return (plan.load.concurrency or 0) + (plan.load.window_requests or 0)


def schedule_sha256(plan: PlannedLoad, schedule: Schedule | None) -> str:
    """SHA-256 over planned time (int64), prompt and output length (uint32) of each request; little-endian.

    A closed loop's times are -1.
    """
    count = hashed_requests(plan, schedule)
    rows = np.empty(count, dtype=np.dtype([("planned", "<i8"), ("prompt", "<u4"), ("output", "<u4")]))
    rows["planned"] = -1 if schedule is None else schedule.planned_ns[:count]
    rows["prompt"] = plan.load.prompt_tokens
    rows["output"] = plan.load.output_tokens
    return hashlib.sha256(rows.tobytes()).hexdigest()
