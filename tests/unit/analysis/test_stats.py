from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, norm, t, theilslopes

from goodput.analysis import stats

VALUES = st.lists(st.floats(0.1, 100), min_size=2, max_size=8)


def test_t_interval_by_hand() -> None:
    # mean 4, sd 2, n 3: 4.302653 * 2 / sqrt(3) = 4.968275
    assert stats.t_interval([2, 4, 6]) == pytest.approx((4 - 4.968275, 4 + 4.968275), abs=1e-5)
    assert stats.t_interval([2]) is None
    assert stats.t_interval([]) is None
    assert stats.mean([]) is None


@given(VALUES, st.floats(0.1, 10))
def test_t_interval_scales_and_holds_the_mean(values: list[float], factor: float) -> None:
    low, high = stats.t_interval(values) or (math.nan, math.nan)
    assert low <= stats.mean(values) + 1e-9 and stats.mean(values) - 1e-9 <= high  # type: ignore[operator]  # noqa: PT018
    assert stats.t_interval([value * factor for value in values]) == pytest.approx(
        (low * factor, high * factor), rel=1e-6, abs=1e-6
    )


@given(probability=st.floats(0.001, 0.999), n=st.integers(1, 500), p=st.floats(0.01, 0.99))
def test_quantiles_are_those_of_scipy(probability: float, n: int, p: float) -> None:
    assert stats.t_quantile(probability, n) == pytest.approx(t.ppf(probability, n))
    assert stats.normal_quantile(probability) == pytest.approx(norm.ppf(probability))
    k = stats.binomial_quantile(probability, n, p)
    assert binom.cdf(k, n, p) >= probability - 1e-9
    assert k == 0 or binom.cdf(k - 1, n, p) < probability + 1e-9


@given(VALUES)
def test_the_trend_is_that_of_scipy(values: list[float]) -> None:
    slope = theilslopes(values, np.arange(len(values)))[0]
    assert stats.trend(values) == pytest.approx(slope * (len(values) - 1), abs=1e-9)


def test_equal_values_have_no_width() -> None:
    assert stats.t_interval([0.1, 0.1, 0.1]) == pytest.approx((0.1, 0.1), abs=1e-15)


def test_wilson_reference_values() -> None:
    # 90 % of 100, 1000: .826-.945 and .880-.917
    assert stats.wilson(90, 100) == pytest.approx((0.8256, 0.9448), abs=1e-4)
    assert stats.wilson(900, 1000) == pytest.approx((0.8799, 0.9171), abs=1e-4)
    assert stats.wilson(0, 0) is None


@given(st.integers(0, 50), st.integers(0, 50))
def test_wilson_is_that_of_scipy(good: int, bad: int) -> None:
    if good + bad:
        expected = binomtest(good, good + bad).proportion_ci(0.95, method="wilson")
        assert stats.wilson(good, good + bad) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_ratio_interval_of_equal_blocks_is_the_t_interval_of_their_shares() -> None:
    got = stats.ratio_interval([80, 90, 85], [100, 100, 100])
    assert got == pytest.approx(stats.t_interval([0.80, 0.90, 0.85]))
    assert stats.ratio_interval([80], [100]) is None
    assert stats.ratio_interval([0, 0], [0, 0]) is None


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2, max_size=8))
def test_ratio_interval_stays_in_the_unit_range(blocks: list[tuple[int, int]]) -> None:
    parts, wholes = [part for part, _ in blocks], [part + rest for part, rest in blocks]
    interval = stats.ratio_interval(parts, wholes)
    if sum(wholes):
        assert interval is not None
        assert 0 <= interval[0] <= sum(parts) / sum(wholes) + 1e-12
        assert sum(parts) / sum(wholes) - 1e-12 <= interval[1] <= 1


def test_minimum_samples_are_those_of_mlperf_early_stopping() -> None:
    assert stats.minimum_samples(0.99) == 662
    assert stats.minimum_samples(0.9) == 64
    assert stats.minimum_samples(0.5) == 11


def test_ranks_of_a_p99_among_1000() -> None:
    ordered = np.arange(1.0, 1001.0)
    assert stats.percentile_interval(ordered, 0.99) == (983, 997)


def test_too_small_a_sample_has_no_upper_limit() -> None:
    low, high = stats.percentile_interval(np.arange(1.0, 301.0), 0.99)
    assert low == 293
    assert high is None
    assert stats.percentile_interval(np.array([]), 0.99) == (None, None)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_order_statistics_cover_a_known_median(seed: int) -> None:
    generator = np.random.default_rng(seed)
    samples = np.sort(generator.exponential(size=(200, 101)), axis=1)
    hits = 0
    for ordered in samples:
        low, high = stats.percentile_interval(ordered, 0.5)
        hits += low is not None and high is not None and low <= math.log(2) <= high
    assert hits >= 176  # 95 % nominal; below 88 % has a chance under 1e-4


def test_needed_blocks_is_the_first_n_that_is_narrow_enough() -> None:
    sd, zone, tail = 0.04, math.log(1.05), 0.025
    n = stats.needed_blocks(sd, zone, tail)
    assert n is not None
    assert stats.half_width(sd, n, tail) <= zone < stats.half_width(sd, n - 1, tail)
    assert stats.needed_blocks(0, zone, tail) == 2
    assert stats.needed_blocks(1e6, zone, tail) is None


def test_trend_is_that_of_the_line_and_ignores_one_outlier() -> None:
    assert stats.trend([1.0, 1.1, 1.2, 1.3]) == pytest.approx(0.3)
    assert stats.trend([1.0, 1.0, 9.0, 1.0, 1.0]) == pytest.approx(0, abs=1e-12)
    assert stats.trend([1.0]) is None
