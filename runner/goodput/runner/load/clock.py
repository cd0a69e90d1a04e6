"""The wall clock against the monotonic clock (standard library only)."""

from __future__ import annotations

import time

_TRIES = 20


def offset_ns() -> int:
    """CLOCK_REALTIME − CLOCK_MONOTONIC in ns: of several readings the one that was least interrupted."""
    best: tuple[int, int] | None = None
    for _ in range(_TRIES):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        reading = (after - before, wall - (before + after) // 2)
        if best is None or reading < best:
            best = reading
    assert best is not None
    return best[1]
