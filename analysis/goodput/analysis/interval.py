"""The 95 % interval of a config's score. Pure.

From six blocks on: percentile bootstrap over blocks that repeats the choice of load in each sample, since the
best of several noisy load points looks better than it is. Below: t over the block values at the chosen load.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from goodput.analysis.decide import Decision
from goodput.analysis.score import BlockValue, Contender, Question, Score, geometric_mean, gpu_divisors
from goodput.analysis.stats import CONFIDENCE, Interval, t_interval

BOOTSTRAP_BLOCKS = 6
SAMPLES = 2000


def best_interval(field: Sequence[Contender], decision: Decision, question: Question) -> Interval | None:
    """The interval of the recommended config's score; None where there is none."""
    if decision.best is None:
        return None
    contender = next(each for each in field if each.config == decision.best)
    return score_interval(contender, decision.scores[decision.best], question, gpu_divisors(field)[decision.best])


def score_interval(contender: Contender, score: Score, question: Question, divisor: int = 1) -> Interval | None:
    """Of the score, in its unit; None for an infeasible config or fewer than two blocks."""
    if score.value is None:
        return None
    values = _block_values(contender, score, question, divisor)
    if len(values) >= BOOTSTRAP_BLOCKS:
        return _bootstrap(contender, question, divisor)
    interval = t_interval(list(values.values()))
    return None if interval is None else (max(0.0, interval[0]), interval[1])


def _block_values(contender: Contender, score: Score, question: Question, divisor: int) -> dict[str, float]:
    """Block → value at the chosen load points, geometric mean over shapes; blocks that lack one are left out."""
    found: dict[str, list[float]] = {}
    for point in score.chosen.values():
        for block, cell in contender.points[point.load].items():
            value = cell.value(question.objective)
            if value is not None:
                found.setdefault(block, []).append(value / divisor)
    complete = {block: values for block, values in found.items() if len(values) == len(score.chosen)}
    return {
        block: geometric_mean(values) if len(values) == 1 or all(values) else 0.0 for block, values in complete.items()
    }


def _bootstrap(contender: Contender, question: Question, divisor: int) -> Interval:
    """A sample in which no load point qualifies has score 0."""
    blocks = sorted({block for cells in contender.points.values() for block in cells})
    drawn = np.random.default_rng(0).integers(0, len(blocks), size=(SAMPLES, len(blocks)))
    logs = np.zeros(SAMPLES)
    for loads in question.shapes.values():
        best = np.zeros(SAMPLES)
        for load in loads:
            cells = contender.points.get(load, {})
            if cells:
                best = np.maximum(best, _sampled([cells.get(block) for block in blocks], drawn, question))
        with np.errstate(divide="ignore"):
            logs += np.log(best / divisor)
    low, high = np.quantile(np.exp(logs / len(question.shapes)), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _sampled(
    cells: list[BlockValue | None], drawn: np.ndarray[tuple[int, ...], np.dtype[np.int64]], question: Question
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Per bootstrap sample: mean value of this load point, 0 where it does not qualify."""
    rows = [
        (value, cell.good, cell.attempted, float(cell.saturated))
        if cell is not None and (value := cell.value(question.objective)) is not None
        else (math.nan,) * 4
        for cell in cells
    ]
    values, good, attempted, saturated = np.array(rows, dtype=np.float64).T[:, drawn]
    n = np.count_nonzero(~np.isnan(values), axis=1)
    attained = np.nansum(good, axis=1) >= question.attainment * np.nansum(attempted, axis=1)
    fit = (n > 0) & attained & (2 * np.nansum(saturated, axis=1) < n)
    return np.where(fit, np.nansum(values, axis=1) / np.maximum(n, 1), 0.0)
