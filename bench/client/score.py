"""Judges a client's results by the server's truth (pure). Seconds; errors are absolute values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from bench.client.truth import Served
from bench.peers.base import Answer

Pair = tuple[Answer, Served]


@dataclass(frozen=True)
class Timing:
    """How far the latencies are off.

    Attributes:
        ttft_p50, ttft_p99: |reported − true|.
        gap_p99: the same of each gap between tokens; of a request's mean gap where ``gap_is_mean``.
        judged: requests.
    """

    ttft_p50: float | None
    ttft_p99: float | None
    gap_p99: float | None
    gap_is_mean: bool
    judged: int

    @property
    def worst_p99(self) -> float | None:
        """The larger of both errors."""
        known = [value for value in (self.ttft_p99, self.gap_p99) if value is not None]
        return max(known) if self.ttft_p99 is not None else None


def timing(pairs: Sequence[Pair]) -> Timing:
    """Errors over the requests that client and server have both."""
    good = [(answer, row) for answer, row in pairs if answer.success and row.tokens]
    ttft = [abs(a.ttft - row.ttft) for a, row in good if a.ttft is not None and row.ttft is not None]
    single = [(a.gaps, row.gaps) for a, row in good if a.gaps is not None]
    exact = [abs(x - y) for gaps, true in single if len(gaps) == len(true) for x, y in zip(gaps, true, strict=True)]
    gaps, mean = (exact, False) if exact else (_mean_gaps(good), True)
    return Timing(_quantile(ttft, 0.5), _quantile(ttft, 0.99), _quantile(gaps, 0.99), mean and bool(gaps), len(ttft))


def _mean_gaps(pairs: Sequence[Pair]) -> list[float]:
    errors = []
    for answer, row in pairs:
        if answer.gaps:
            said: float | None = sum(answer.gaps) / len(answer.gaps)
        else:
            said = answer.mean_gap
        if said is not None and len(row.tokens) > 1:
            errors.append(abs(said - (row.tokens[-1] - row.tokens[0]) / (len(row.tokens) - 1)))
    return errors


def _quantile(values: Sequence[float], share: float) -> float | None:
    return float(np.quantile(values, share)) if len(values) else None


def held(rows: Sequence[Served], asked: int) -> float | None:
    """Mean number of requests under way at the server, from the ``asked``-th arrival to the last one."""
    if len(rows) <= asked:
        return None
    begin, end = rows[asked - 1].arrived, rows[-1].arrived
    if end <= begin:
        return None
    inside = (min(end, row.ended or end) - max(begin, row.arrived) for row in rows)
    return sum(seconds for seconds in inside if seconds > 0) / (end - begin)


@dataclass(frozen=True)
class Honesty:
    """What a client makes of answers that are scripted.

    Attributes:
        called_success: names of failures that it counts as a success.
        called_failure: names of successes that it does not count as one.
    """

    failures: int
    successes: int
    called_success: tuple[str, ...]
    called_failure: tuple[str, ...]


def honesty(pairs: Sequence[Pair], rows: Sequence[Served]) -> Honesty:
    """Compare verdicts. What a client does not report is no success."""
    claimed = Counter(id(row) for answer, row in pairs if answer.success)
    return Honesty(
        failures=sum(row.failure for row in rows),
        successes=sum(not row.failure for row in rows),
        called_success=tuple(row.name for row in rows if row.failure and claimed[id(row)]),
        called_failure=tuple(row.name for row in rows if not row.failure and not claimed[id(row)]),
    )
