"""Arrival processes: endless streams of planned times, drawn from a load's seed (pure).

Times are whole nanoseconds from the cell's start, so that they hash the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from goodput.analysis.schema.planned import Load, Stage

Times = NDArray[np.int64]
Floats = NDArray[np.float64]
Purpose = Literal["arrivals", "prompts", "lengths", "rows", "prefixes", "groups"]

NANOSECONDS = 1_000_000_000
_DRAWN_AT_ONCE = 4096
_SPAWN_KEYS: dict[Purpose, int] = {"arrivals": 0, "prompts": 1, "lengths": 2, "rows": 3, "prefixes": 4, "groups": 5}


def seed_sequence(seed: int, purpose: Purpose, index: int | None = None) -> np.random.SeedSequence:
    """The independent child seed of one purpose (and of one prompt), whatever else is drawn."""
    key = (_SPAWN_KEYS[purpose],) if index is None else (_SPAWN_KEYS[purpose], index)
    return np.random.SeedSequence(entropy=seed, spawn_key=key)


def generator(seed: int, purpose: Purpose, index: int | None = None) -> np.random.Generator:
    """The random numbers of one purpose. PCG64 by name: its stream is the same in every numpy."""
    return np.random.Generator(np.random.PCG64(seed_sequence(seed, purpose, index)))


def arrivals(load: Load, seed: int, *, lead_in_seconds: float = 0.0) -> Iterator[Times]:
    """Planned times, ascending, without end, in batches.

    ``lead_in_seconds`` matters to stages alone, whose clock starts when it ends. Raises `ValueError` for loads
    whose times are not drawn: closed loop, burst, replay.
    """
    if load.request_rate is not None and load.arrival == "constant":
        for index in _whole_numbers():
            yield _nanoseconds(index / load.request_rate)
    elif load.request_rate is not None:
        yield from map(_nanoseconds, _sums(gaps(load, seed, 1.0 / load.request_rate)))
    elif load.stages:
        rate = PlannedRate(load.stages, lead_in_seconds)
        units = _whole_numbers() if load.arrival == "constant" else _sums(gaps(load, seed, 1.0))
        for batch in units:
            yield _nanoseconds(rate.times(batch))
    else:
        raise ValueError(f"a load with arrival {load.arrival} has no arrival times that could be drawn")


def gaps(load: Load, seed: int, mean: float) -> Iterator[Floats]:
    """Gaps between arrivals in seconds, without end, in batches, with this mean.

    Poisson: exponential by inverse transform. Gamma: shape = burstiness, as `vllm bench serve`
    (1 is Poisson, below 1 is burstier).
    """
    drawn = generator(seed, "arrivals")
    shape = load.burstiness or 1.0
    while True:
        if load.arrival == "gamma":
            yield drawn.standard_gamma(shape, _DRAWN_AT_ONCE) * (mean / shape)
        else:
            yield -np.log1p(-drawn.random(_DRAWN_AT_ONCE)) * mean


class PlannedRate:
    """A rate that changes over time, and the arrivals that it makes of arrivals at rate 1 (time rescaling).

    An arrival of the unit process at u happens at Λ⁻¹(u), where Λ(t) is the planned number of arrivals up to t:
    piecewise quadratic, since the rate is piecewise linear. Of a unit Poisson process this makes exactly the
    Poisson process with that rate (Brown et al., Neural Computation 14(2), 2002, section 2).
    The lead-in has the first stage's rate; behind the last stage its last rate goes on.
    """

    def __init__(self, stages: Sequence[Stage], lead_in_seconds: float = 0.0) -> None:
        pieces = [(stage.duration_seconds, stage.rate, stage.end_rate or stage.rate) for stage in stages]
        if lead_in_seconds:
            pieces.insert(0, (lead_in_seconds, pieces[0][1], pieces[0][1]))
        seconds, first, last = np.array(pieces).T
        self._starts = np.concatenate([[0.0], np.cumsum(seconds)])
        self._counts = np.concatenate([[0.0], np.cumsum(seconds * (first + last) / 2)])
        self._rates = np.concatenate([first, last[-1:]])
        self._slopes = np.concatenate([(last - first) / seconds, [0.0]])

    def times(self, units: Floats) -> Floats:
        """Λ⁻¹ of each: seconds from the lead-in's start."""
        piece = np.searchsorted(self._counts, units, side="right") - 1
        left, rate, slope = units - self._counts[piece], self._rates[piece], self._slopes[piece]
        squared = np.maximum(rate * rate + 2 * slope * left, 0.0)  # the rate then, squared
        times: Floats = self._starts[piece] + 2 * left / (rate + np.sqrt(squared))
        return times


def _sums(batches: Iterator[Floats]) -> Iterator[Floats]:
    passed = 0.0
    for batch in batches:
        times = passed + np.cumsum(batch)
        passed = float(times[-1])
        yield times


def _whole_numbers() -> Iterator[Floats]:
    first = 0
    while True:
        yield np.arange(first, first + _DRAWN_AT_ONCE, dtype=np.float64)
        first += _DRAWN_AT_ONCE


def _nanoseconds(seconds: Floats) -> Times:
    return np.rint(seconds * NANOSECONDS).astype(np.int64)
