from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from goodput.runner.steady import BATCH, MIN_BATCHES, mser, steady


def noise(count: int, seed: int = 1) -> list[float]:
    return list(np.random.default_rng(seed).normal(1.0, 0.05, count))


def test_too_few_values_say_nothing() -> None:
    assert mser(noise(MIN_BATCHES * BATCH - 1)) is None
    assert not steady(noise(MIN_BATCHES * BATCH - 1))


def test_a_series_that_does_not_move_is_steady() -> None:
    assert sum(steady(noise(100, seed)) for seed in range(50)) >= 45


def test_a_series_that_still_falls_is_not() -> None:
    falling = np.linspace(3, 1, 100) + np.random.default_rng(2).normal(0, 0.01, 100)
    assert not steady(list(falling))


def test_a_transient_at_the_start_is_cut_off() -> None:
    values = [*np.linspace(5, 1, 20), *noise(180)]
    point = mser(values)
    assert point is not None
    assert 2 <= point <= 6
    assert steady(values)


@given(st.lists(st.floats(0.01, 100), min_size=MIN_BATCHES * BATCH, max_size=300))
def test_the_closed_form_is_the_definition(values: list[float]) -> None:
    count = len(values) // BATCH
    means = np.asarray(values[: count * BATCH]).reshape(count, BATCH).mean(axis=1)
    direct = [((means[k:] - means[k:].mean()) ** 2).sum() / (count - k) ** 2 for k in range(count // 2 + 1)]
    point = mser(values)
    assert point is not None
    assert direct[point] <= min(direct) + 1e-6 * max(1.0, float((means**2).max()))
