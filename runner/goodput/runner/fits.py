"""Whether requests fit a server's model length, vLLM's ``max_model_len``: prompt and output together (pure).

A chat's prompt is fitted with its template, so its length is the planned one too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from goodput.analysis.schema.planned import Load


def longest_request(load: Load) -> int:
    """Most tokens that prompt and output of one request may have; ``max_tokens`` where lengths have no end."""
    return load.max_tokens if load.max_tokens is not None else _request(load, 1 + _reach(load))


def shortest_request(load: Load) -> int:
    """Tokens that every request has at least."""
    return 2 if load.max_tokens is not None else _request(load, 1 - _reach(load))


def never_fit(loads: Iterable[Load], max_model_len: int) -> tuple[Load, ...]:
    """The loads of which a server of that length can take no request as it was planned."""
    return tuple(load for load in loads if shortest_request(load) > max_model_len)


def may_not_fit(loads: Iterable[Load], max_model_len: int) -> tuple[Load, ...]:
    """The loads of which such a server takes some requests, and perhaps not all."""
    return tuple(load for load in loads if shortest_request(load) <= max_model_len < longest_request(load))


def _reach(load: Load) -> float:
    """How far lengths may lie from their mean, over the mean: uniform lengths end at √3 standard deviations."""
    return math.sqrt(3) * (load.length_variation or 0.0)


def _request(load: Load, share: float) -> int:
    return sum(max(1, round(mean * share)) for mean in (load.prompt_tokens or 1, load.output_tokens or 1))
