"""How many workers a load needs: few are simple, too few would be the measurement's bottleneck (pure)."""

from __future__ import annotations

import math

from goodput.analysis.schema.planned import Load
from goodput.runner import expect

USED_RATIO = 0.25  # of a worker's ceiling that is planned for: a cell is void above half
CEILING = 30_000.0  # events per CPU second where it was not measured: a slow core
TOKENS_PER_SECOND = 100.0  # of one stream: closed loops do not say how fast the server is


def events_per_second(load: Load) -> float:
    """Events that the load can bring at most: in an open loop one for each planned token."""
    rate = expect.requests_per_second(load)
    if rate is not None:
        return rate * expect.output_tokens(load)
    return (load.concurrency or load.window_requests or 1) * TOKENS_PER_SECOND


def workers(load: Load, ceiling: float | None, cores: float) -> int:
    """Workers for this load, at most one for each core but one, which is for everything else.

    Args:
        load: the load point.
        ceiling: events per CPU second of one worker, as measured; None: not known.
        cores: what this process tree may use.
    """
    needed = math.ceil(events_per_second(load) / (USED_RATIO * (ceiling or CEILING)))
    return max(1, min(needed, math.floor(cores) - 1))
