"""Two configs against each other, on the log scale, over the blocks that both have. Pure.

The standard deviation of their differences is never taken as less than what one request changes: counts are whole
numbers, so a few blocks may differ by the same number by chance (docs/decisions/0008-least-spread.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from goodput.analysis.score import BlockLog, Contender
from goodput.analysis.stats import CONFIDENCE, deviation, half_width, mean, needed_blocks

Standing = Literal["worse", "tied", "undecided"]
Logs = Mapping[str, Mapping[str, BlockLog]]  # config → block → log value at its chosen load points


@dataclass(frozen=True)
class Comparison:
    """Leader against one other config. ``low`` and ``high`` bound log(leader/other)."""

    config: str
    blocks: int
    standing: Standing
    difference: float | None = None  # mean of log(leader/other)
    low: float | None = None
    high: float | None = None
    needed: int | None = None  # blocks at which the half-width reaches the zone; None: not reachable
    floored: bool = False  # the differences spread less than one request changes them, which was taken instead
    confounded: bool = False

    @property
    def ahead(self) -> float | None:
        """Leader's advantage as a ratio − 1."""
        return _change(self.difference)

    @property
    def ahead_low(self) -> float | None:
        """Its lower limit."""
        return _change(self.low)

    @property
    def ahead_high(self) -> float | None:
        """Its upper limit."""
        return _change(self.high)


@dataclass(frozen=True)
class Against:
    """Leader against the reference, as ratios − 1; the interval (95 %, this pair alone) needs two blocks."""

    change: float
    low: float | None
    high: float | None


def compare(leader: Contender, other: Contender, logs: Logs, zone: float, tail: float) -> Comparison:
    """Paired t interval of log(leader/other), leaving ``tail`` on each side, and what it says of ``other``.

    worse: the lower limit is above zero. tied: the upper limit is within ``zone``. Otherwise, and below two
    shared blocks, undecided.
    """
    differences, floor = _differences(logs[leader.config], logs[other.config])
    n = len(differences)
    if n < 2:
        return Comparison(other.config, n, "undecided", mean(differences), needed=2)
    center, seen = math.fsum(differences) / n, deviation(differences)
    sd = max(seen, floor)
    half = half_width(sd, n, tail)
    standing: Standing = "undecided"
    if center - half > 0:
        standing = "worse"
    elif center + half <= zone:
        standing = "tied"
    needed = needed_blocks(sd, zone, tail)
    return Comparison(
        other.config,
        n,
        standing,
        center,
        center - half,
        center + half,
        needed=None if needed is None else max(needed, n + 1),
        floored=seen < floor,
        confounded=_confounded(leader, other),
    )


def against(logs: Logs, best: str, reference: str) -> Against | None:
    """How ``best`` compares with the reference; None where it is the reference, or they share no block."""
    if best == reference or reference not in logs:
        return None
    differences, floor = _differences(logs[best], logs[reference])
    n = len(differences)
    if n == 0:
        return None
    center = math.fsum(differences) / n
    if n == 1:
        return Against(math.expm1(center), None, None)
    half = half_width(max(deviation(differences), floor), n, (1 - CONFIDENCE) / 2)
    return Against(math.expm1(center), _change(center - half), _change(center + half))


def least_spread(steps: Sequence[float]) -> float:
    """The least standard deviation that is believed of block differences: root mean square of one request's steps."""
    return math.sqrt(math.fsum(step * step for step in steps) / len(steps)) if steps else 0.0


def _differences(ours: Mapping[str, BlockLog], theirs: Mapping[str, BlockLog]) -> tuple[list[float], float]:
    """log(ours/theirs) of the blocks that both have, and the least spread of it: one request of the one with fewer."""
    shared = sorted(ours.keys() & theirs.keys())
    steps = [max(ours[block].step, theirs[block].step) for block in shared]
    return [ours[block].value - theirs[block].value for block in shared], least_spread(steps)


def _change(log_ratio: float | None) -> float | None:
    """The ratio − 1; infinite beyond what a float holds: few requests in two blocks of many configs say that little."""
    try:
        return None if log_ratio is None else math.expm1(log_ratio)
    except OverflowError:
        return math.inf


def _confounded(leader: Contender, other: Contender) -> bool:
    """Both have known GPUs and not one in common: the GPU could be the whole difference."""
    ours, theirs = (
        {cell.gpu for blocks in each.points.values() for cell in blocks.values() if cell.gpu}
        for each in (leader, other)
    )
    return bool(ours) and bool(theirs) and ours.isdisjoint(theirs)
