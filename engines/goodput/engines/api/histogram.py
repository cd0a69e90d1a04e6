"""Histograms as plain numbers, with the bucket edges of vLLM 0.32.0 (v1/metrics/loggers.py)."""

from bisect import bisect_left
from collections.abc import Sequence

TTFT_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0),
    *(40.0, 80.0, 160.0, 640.0, 2560.0),
)
TOKEN_BUCKETS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0),
    80.0,
)
REQUEST_BUCKETS = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0),
    *(480.0, 960.0, 1920.0, 7680.0),
)
N_BUCKETS = (1, 2, 5, 10, 20)


def one_two_five(largest: int) -> tuple[int, ...]:
    """1, 2, 5, 10, 20, 50, … up to `largest`."""
    values: list[int] = []
    decade = 1
    while True:
        for mantissa in (1, 2, 5):
            if mantissa * decade > largest:
                return tuple(values)
            values.append(mantissa * decade)
        decade *= 10


class Histogram:
    """Counts per bucket; an upper edge belongs to its bucket."""

    __slots__ = ("counts", "edges", "total")

    def __init__(self, edges: Sequence[float]) -> None:
        self.edges = tuple(float(edge) for edge in edges)
        self.counts = [0] * (len(edges) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Adds the value, `times` times."""
        self.counts[bisect_left(self.edges, value)] += times
        self.total += value * times

    def cumulative(self) -> list[tuple[str, float]]:
        """(edge, observations at or below it), the last edge being `+Inf`."""
        rows, below = [], 0
        for edge, count in zip((*map(str, self.edges), "+Inf"), self.counts, strict=True):
            below += count
            rows.append((edge, float(below)))
        return rows
