"""Intervals and sample sizes. Pure; an empty or too small sample gives None, never 0.

Within one cell: order statistics and Wilson, true of this run only. Across server starts the datum is the
block's value: t intervals over blocks. Nothing is pooled over server starts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import median

import numpy as np
from numpy.typing import NDArray
from scipy import special  # not scipy.stats, which takes seconds to load

Interval = tuple[float, float]
CONFIDENCE = 0.95
MANY_BLOCKS = 10_000  # more than this is "not reachable"


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean; None for an empty sequence."""
    return math.fsum(values) / len(values) if values else None


def t_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Two-sided t interval of the mean: mean ± t((1 + confidence)/2, n − 1)·sd/√n. None below two values."""
    if len(values) < 2:
        return None
    center = math.fsum(values) / len(values)
    half = half_width(deviation(values), len(values), (1 - confidence) / 2)
    return center - half, center + half


def deviation(values: Sequence[float]) -> float:
    """Sample standard deviation (n − 1). Values that are equal but for rounding have none."""
    center = math.fsum(values) / len(values)
    sd = math.sqrt(math.fsum((value - center) ** 2 for value in values) / (len(values) - 1))
    return 0.0 if sd < 1e-12 * max(abs(value) for value in values) else sd


def half_width(sd: float, n: int, tail: float) -> float:
    """t(1 − tail, n − 1)·sd/√n for n ≥ 2; ``tail`` is the probability left on one side."""
    return t_quantile(1 - tail, n - 1) * sd / math.sqrt(n)


@cache
def t_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's t."""
    return float(special.stdtrit(freedom, probability))


@cache
def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return float(special.ndtri(probability))


def ratio_interval(parts: Sequence[float], wholes: Sequence[float]) -> Interval | None:
    """Interval (t) of Σ parts / Σ wholes over blocks, within 0..1.

    Linearised variance of a ratio of sums (the ratio estimator of Cochran, Sampling Techniques): with
    R = Σ parts / Σ wholes and residuals r = part − R·whole, var = Σ r² / (n·(n − 1)·mean(whole)²).
    """
    n = len(parts)
    whole = math.fsum(wholes)
    if n < 2 or whole == 0:
        return None
    center = math.fsum(parts) / whole
    squares = math.fsum((part - center * all_) ** 2 for part, all_ in zip(parts, wholes, strict=True))
    error = math.sqrt(squares / (n * (n - 1))) / (whole / n)
    half = t_quantile((1 + CONFIDENCE) / 2, n - 1) * error
    return max(0.0, center - half), min(1.0, center + half)


def wilson(good: int, attempted: int, confidence: float = CONFIDENCE) -> Interval | None:
    """Wilson (1927) score interval of a share within one cell (this run only); None for an empty set."""
    if attempted == 0:
        return None
    z2 = normal_quantile((1 + confidence) / 2) ** 2
    share = good / attempted
    center = (share + z2 / (2 * attempted)) / (1 + z2 / attempted)
    half = math.sqrt(z2 * (share * (1 - share) + z2 / (4 * attempted)) / attempted) / (1 + z2 / attempted)
    return max(0.0, center - half), min(1.0, center + half)


def percentile_interval(
    ordered: NDArray[np.float64], p: float, confidence: float = CONFIDENCE
) -> tuple[float | None, float | None]:
    """Order-statistic interval of a percentile within one cell (this run only).

    Ranks binom.ppf(a/2, n, p) and binom.ppf(1 − a/2, n, p) + 1 with a = 1 − confidence: the quantile test of
    Conover, Practical Nonparametric Statistics; true of any distribution. A limit whose rank lies outside the
    sample is None.
    """
    n = len(ordered)
    if n == 0:
        return None, None
    low, high = _ranks(n, p, confidence)
    return (
        float(ordered[low - 1]) if low >= 1 else None,
        float(ordered[high - 1]) if high <= n else None,
    )


@cache
def _ranks(n: int, p: float, confidence: float) -> tuple[int, int]:
    alpha = 1 - confidence
    return binomial_quantile(alpha / 2, n, p), binomial_quantile(1 - alpha / 2, n, p) + 1


def binomial_quantile(probability: float, n: int, p: float) -> int:
    """Least k with P(X ≤ k) ≥ probability for X ~ Binomial(n, p); 0 < probability < 1."""
    k = max(0, math.ceil(float(special.bdtrik(probability, n, p))))
    return k - 1 if k > 0 and float(special.bdtr(k - 1, n, p)) >= probability else k


@cache
def minimum_samples(p: float, confidence: float = 0.99) -> int:
    """Least n that supports the p-quantile: P(at most one of n values lies beyond it) ≤ 1 − confidence.

    The early-stopping rule of MLPerf LoadGen with one value over the limit: 662 requests for p99, 64 for p90.
    """
    beyond, within = min(p, 1 - p), max(p, 1 - p)
    n = 2
    while within**n + n * beyond * within ** (n - 1) > 1 - confidence:
        n += 1
    return n


def needed_blocks(sd: float, zone: float, tail: float) -> int | None:
    """Least n ≥ 2 at which the half-width at this ``sd`` reaches ``zone``; None where none below `MANY_BLOCKS` does."""

    def wide(n: int) -> bool:
        return half_width(sd, n, tail) > zone

    if wide(MANY_BLOCKS):
        return None
    low, high = 1, MANY_BLOCKS  # the half-width falls with n: bisect
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wide(middle) else (low, middle)
    return high


def trend(values: Sequence[float]) -> float | None:
    """Change from first to last along the Theil–Sen line (median of pairwise slopes); None below two values."""
    if len(values) < 2:
        return None
    rises = [(values[j] - values[i]) / (j - i) for j in range(len(values)) for i in range(j)]
    return median(rises) * (len(values) - 1)
