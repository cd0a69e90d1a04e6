"""Lengths of requests: each distribution has its mean, its coefficient of variation, and its form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from goodput.analysis.schema.planned import Load
from goodput.runner.load.errors import PromptError
from goodput.runner.load.lengths import PlannedLengths

DRAWS = 200_000
MEANS = (4000, 2000)  # long enough for whole tokens not to matter


def load(**changes: object) -> Load:
    document = {"prompt_tokens": MEANS[0], "output_tokens": MEANS[1], "arrival": "poisson", "request_rate": 1}
    return Load.model_validate({**document, "window_seconds": 1, **changes})


def drawn(of: Load, seed: int = 3, *, shortest: int = 1, count: int = DRAWS) -> NDArray[np.int64]:
    lengths = PlannedLengths(of, seed, shortest=shortest)
    return np.array([lengths.at(index) for index in range(count)])


def test_without_a_distribution_lengths_are_exact() -> None:
    assert PlannedLengths(load(), 1).at(10**9) == MEANS


@pytest.mark.parametrize("distribution", ["uniform", "normal", "lognormal"])
@pytest.mark.parametrize("variation", [0.1, 0.3])
def test_variation_means_the_same_everywhere(distribution: str, variation: float) -> None:
    pairs = drawn(load(length_distribution=distribution, length_variation=variation))
    for column, mean in zip(pairs.T, MEANS, strict=True):
        assert column.mean() == pytest.approx(mean, rel=5 * variation / math.sqrt(DRAWS))
        assert column.std() / column.mean() == pytest.approx(variation, rel=0.02)
    both = np.mean(np.prod(pairs / MEANS - 1, axis=1)) / variation**2
    assert abs(both) < 0.02, "prompts and outputs are independent"


def test_forms() -> None:
    bound = 1.95 / math.sqrt(DRAWS) + 1e-3  # Kolmogorov-Smirnov at 0.001, and what rounding to tokens moves
    uniform = drawn(load(length_distribution="uniform", length_variation=0.5))[:, 0]
    width = 2 * math.sqrt(3) * 0.5
    assert stats.kstest(uniform / MEANS[0], stats.uniform(1 - width / 2, width).cdf).statistic < bound
    lognormal = drawn(load(length_distribution="lognormal", length_variation=1.0))[:, 0]
    sigma = math.sqrt(math.log(2))
    assert (
        stats.kstest(lognormal / MEANS[0], stats.lognorm(sigma, scale=math.exp(-(sigma**2) / 2)).cdf).statistic < bound
    )
    normal = drawn(load(length_distribution="normal", length_variation=0.2))[:, 0]
    assert stats.kstest(normal / MEANS[0], stats.norm(1, 0.2).cdf).statistic < bound


def test_what_is_too_short_is_lengthened_and_what_is_too_long_is_drawn_again() -> None:
    wide = load(length_distribution="normal", length_variation=1.0, max_tokens=8000)
    pairs = drawn(wide, count=20_000)
    assert pairs.min() == 1
    assert pairs.sum(axis=1).max() <= 8000
    assert (pairs[:, 0] == 1).mean() > 0.1
    assert drawn(wide, shortest=30, count=1000)[:, 0].min() == 30
    shared = wide.model_copy(update={"prefix_groups": 2, "prefix_tokens": 64})
    assert drawn(shared, count=1000)[:, 0].min() == 65
    never = wide.model_copy(update={"max_tokens": 2, "length_variation": 0.001})
    with pytest.raises(PromptError, match="hardly any request"):
        PlannedLengths(never, 1).at(0)


def test_lengths_are_a_function_of_the_seed() -> None:
    varied = load(length_distribution="lognormal", length_variation=0.5)
    assert np.array_equal(drawn(varied, 1, count=5000), drawn(varied, 1, count=5000))
    assert not np.array_equal(drawn(varied, 1, count=50), drawn(varied, 2, count=50))
