"""When a series of observations has reached its steady state: MSER-5 (pure).

MSER truncates a series where the standard error of the mean of the rest is smallest; MSER-5 does so on means
of five (White 1997, "An effective truncation heuristic"; Spratt 1998; compared by Hoad, Robinson, Davies 2008).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BATCH = 5
MIN_BATCHES = 10


def mser(values: Sequence[float], *, batch: int = BATCH) -> int | None:
    """How many batches from the start to leave out, at most half of them.

    ``argmin_k  sum_{i>k} (y_i - mean_k)^2 / (n - k)^2`` over ``k <= n/2``, y being the means of ``batch`` values.
    None for fewer than `MIN_BATCHES` batches: nothing can be said.
    """
    count = len(values) // batch
    if count < MIN_BATCHES:
        return None
    means = np.asarray(values[: count * batch], dtype=float).reshape(count, batch).mean(axis=1)
    left = np.arange(count, 0, -1)
    sums = means[::-1].cumsum()[::-1]
    squares = (means**2)[::-1].cumsum()[::-1]
    statistic = (squares - sums**2 / left) / left**2
    return int(np.argmin(statistic[: count // 2 + 1]))


def steady(values: Sequence[float], *, batch: int = BATCH) -> bool:
    """Whether the truncation point lies before the middle: at the middle the series is still moving."""
    point = mser(values, batch=batch)
    return point is not None and point < (len(values) // batch) // 2
