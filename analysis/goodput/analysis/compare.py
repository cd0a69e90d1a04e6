"""Two configs against each other, on the log scale, over the blocks that both have. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from goodput.analysis.score import Contender
from goodput.analysis.stats import deviation, half_width, mean, needed_blocks, t_interval

Standing = Literal["worse", "tied", "undecided"]
Logs = Mapping[str, Mapping[str, float]]  # config → block → log value at its chosen load points


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
    no_width: bool = False  # block differences are all equal, so the interval has no width
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
    ours, theirs = logs[leader.config], logs[other.config]
    differences = [ours[block] - theirs[block] for block in sorted(ours.keys() & theirs.keys())]
    n = len(differences)
    if n < 2:
        return Comparison(other.config, n, "undecided", mean(differences), needed=2)
    center, sd = math.fsum(differences) / n, deviation(differences)
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
        no_width=sd == 0,
        confounded=_confounded(leader, other),
    )


def against(logs: Logs, best: str, reference: str) -> Against | None:
    """How ``best`` compares with the reference; None where it is the reference, or they share no block."""
    if best == reference or reference not in logs:
        return None
    shared = sorted(logs[best].keys() & logs[reference].keys())
    differences = [logs[best][block] - logs[reference][block] for block in shared]
    if not differences:
        return None
    low, high = t_interval(differences) or (None, None)
    return Against(
        math.expm1(math.fsum(differences) / len(differences)),
        _change(low),
        _change(high),
    )


def _change(log_ratio: float | None) -> float | None:
    return None if log_ratio is None else math.expm1(log_ratio)


def _confounded(leader: Contender, other: Contender) -> bool:
    """Both have known GPUs and not one in common: the GPU could be the whole difference."""
    ours, theirs = (
        {cell.gpu for blocks in each.points.values() for cell in blocks.values() if cell.gpu}
        for each in (leader, other)
    )
    return bool(ours) and bool(theirs) and ours.isdisjoint(theirs)
