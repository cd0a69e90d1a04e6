"""Each arrival process on a million draws: rate, dispersion and the distribution of what lies between arrivals.

Bounds: the mean of n gaps with coefficient of variation c is within 5·c/√n of 1/rate; the index of dispersion of m
bins within 5·√(2/m) of its value; Kolmogorov-Smirnov's D below 1.95/√n (error probability 0.001). Seeds are fixed.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from goodput.analysis.schema.planned import Load, Stage
from goodput.runner.load.processes import NANOSECONDS, PlannedRate, arrivals

DRAWS = 1_000_000
RATE = 100.0
KS = 1.95 / math.sqrt(DRAWS)
RAMP = (
    Stage(duration_seconds=1000, rate=200),
    Stage(duration_seconds=2000, rate=200, end_rate=500),
    Stage(duration_seconds=500, rate=500, end_rate=20),
)
Floats = NDArray[np.float64]


def load(arrival: str, **more: object) -> Load:
    document = {"prompt_tokens": 8, "output_tokens": 4, "arrival": arrival, "window_seconds": 20, **more}
    return Load.model_validate(document)


def drawn(of: Load, lead_in: float = 0.0) -> Floats:
    """A million planned times, seconds."""
    stream = arrivals(of, 20261130, lead_in_seconds=lead_in)
    times = np.concatenate(list(itertools.islice(stream, DRAWS // 4096 + 1)))[:DRAWS]
    return times / NANOSECONDS


def dispersion(times: Floats, seconds: float) -> tuple[float, int]:
    """Variance over mean of the counts in bins, and how many bins there were."""
    bins = np.bincount((times / seconds).astype(int))[:-1]
    return float(np.var(bins, ddof=1) / np.mean(bins)), len(bins)


def kolmogorov_smirnov(gaps: Floats, shape: float) -> float:
    """D against the gamma distribution, from 1 µs on: planned times are whole nanoseconds, so shorter gaps are not."""
    ordered = np.sort(gaps)
    expected = stats.gamma(shape, scale=1 / (shape * RATE)).cdf(ordered)
    below = np.abs(expected - np.arange(len(gaps)) / len(gaps))
    above = np.abs(expected - np.arange(1, len(gaps) + 1) / len(gaps))
    return float(np.maximum(below, above)[ordered >= 1e-6].max())


@pytest.mark.parametrize("shape", [None, 0.25, 1.0, 4.0])
def test_poisson_and_gamma(shape: float | None) -> None:
    arrival = load("poisson" if shape is None else "gamma", request_rate=RATE, burstiness=shape)
    times, shape = drawn(arrival), shape or 1.0
    gaps = np.diff(times, prepend=0.0)
    assert gaps.mean() == pytest.approx(1 / RATE, rel=5 / math.sqrt(shape * DRAWS))
    assert kolmogorov_smirnov(gaps, shape) < KS
    for seconds in (1.0, 10.0):
        # A renewal process in long bins: the squared coefficient of variation of its gaps, 1/shape.
        found, bins = dispersion(times, seconds)
        edge = 0.5 * abs(1 - shape**-2) / (RATE * seconds)  # of short bins; Cox, Renewal Theory (1962), 4.5
        assert found == pytest.approx(1 / shape, rel=5 * math.sqrt(2 / bins), abs=edge)


def test_constant() -> None:
    times = drawn(load("constant", request_rate=RATE))
    assert np.array_equal(times, np.rint(np.arange(DRAWS) / RATE * NANOSECONDS) / NANOSECONDS)
    assert dispersion(times, 1.0)[0] < 1e-3


def test_stages_have_their_rates_and_are_poisson_at_each() -> None:
    lead_in = 100.0
    times = drawn(load("poisson", stages=RAMP), lead_in)
    assert times[-1] > lead_in + 3000
    edges = [0.0, 100.0, 1100.0, 3100.0]
    planned = [200 * 100, 200 * 1000, (200 + 500) / 2 * 2000]
    counts, _ = np.histogram(times, edges)
    for count, expected in zip(counts, planned, strict=True):
        assert count == pytest.approx(expected, abs=5 * math.sqrt(expected))
    halves, _ = np.histogram(times, [1100, 2100, 3100])
    for count, expected in zip(halves, [275_000, 425_000], strict=True):
        assert count == pytest.approx(expected, abs=5 * math.sqrt(expected))
    steady, bins = dispersion(times[(times >= 100) & (times < 1100)] - 100, 0.5)
    assert steady == pytest.approx(1, rel=5 * math.sqrt(2 / bins))


def test_stages_of_constant_arrivals_follow_the_cumulative_rate() -> None:
    """The k-th arrival comes when k were planned, on a ramp too: integrated here by hand."""
    times = drawn(load("constant", stages=(Stage(duration_seconds=10, rate=10, end_rate=30),)))
    seconds = times[times < 10]
    assert len(seconds) == 200
    assert np.allclose(10 * seconds + seconds**2, np.arange(200), atol=1e-6)
    assert np.allclose(np.diff(times[times >= 10]), 1 / 30, atol=1e-7)


def test_rescaled_time_is_the_unit_process() -> None:
    units = np.linspace(0, 1_100_000, 11_001)
    rate = PlannedRate(RAMP, 100)
    times = rate.times(units)
    assert np.all(np.diff(times) > 0)
    grid = np.concatenate([[0, 100], 100 + np.cumsum([stage.duration_seconds for stage in RAMP])])
    counts = np.cumsum([0, 20_000, 200_000, 700_000, 130_000])
    assert np.allclose(np.interp(grid, times, units), counts, rtol=1e-3, atol=150)


@pytest.mark.parametrize("arrival", ["closed", "burst", "replay"])
def test_other_loads_have_no_times_to_draw(arrival: str) -> None:
    with pytest.raises(ValueError, match="no arrival times"):
        next(arrivals(load(arrival, concurrency=1), 0))
