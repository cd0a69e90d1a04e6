"""Did the machine change while the sweep ran? The sentinel: the reference config at both ends of each block. Pure."""

from __future__ import annotations

import math

from goodput.analysis.score import Points, Question, Score
from goodput.analysis.stats import trend


def sentinel_drift(sentinel: Points, reference: Score | None, question: Question) -> float | None:
    """Change of the sentinel from its first to its last block along a Theil–Sen line, on the log scale.

    Per block: mean over load points (the reference's chosen ones; all where it has none) of the log of what an
    attempted request yields. Not per second: each block draws its own arrivals, and their number is no drift.
    """
    chosen = [point.load for point in reference.chosen.values()] if reference else []
    per_block: dict[str, list[float]] = {}
    for load in chosen or sentinel:
        for block, cell in sentinel.get(load, {}).items():
            amount = cell.good if question.objective == "goodput" else cell.output_tokens
            if cell.attempted and amount is not None:
                per_block.setdefault(block, []).append(math.log((amount + 0.5) / (cell.attempted + 0.5)))
    complete = max(map(len, per_block.values()), default=0)
    series = [
        per_block[block]
        for block in sorted(per_block, key=lambda name: (len(name), name))
        if len(per_block[block]) == complete
    ]
    return trend([math.fsum(each) / len(each) for each in series])
