"""Starts that fill the compile cache: where the first config of a compile key cannot do it, the next one does."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from goodput.analysis.schema.base import PRIME
from goodput.operator.plan.attempts import Pair
from goodput.operator.spec.compilekey import compile_key
from goodput.operator.sweep import Sweep


def fillers(sweep: Sweep) -> tuple[tuple[str, ...], ...]:
    """For each planned start the configs that compile the same, in their order; the planned one is the first."""
    if not sweep.primes:
        return ()
    groups: dict[tuple[str, ...], list[str]] = {compile_key(sweep.by_id[first]): [] for first in sweep.primes}
    for config in sweep.configs:
        groups.get(compile_key(config), []).append(config.id)
    return tuple(map(tuple, groups.values()))


def spare(sweep: Sweep, found: Mapping[tuple[str, str], Pair], hopeless: Container[str]) -> Iterator[tuple[str, str]]:
    """Starts that need not be: another config of the same key fills the cache, has filled it, or is to be tried first.

    ``hopeless``: configs that fail for the whole sweep, or are pruned.
    """
    for group in fillers(sweep):
        pairs = [found[PRIME, config] for config in group]
        served = any(pair.done for pair in pairs)
        for pair in pairs:
            if served and not pair.attempts:
                yield pair.block, pair.config
            served = served or pair.live or not (pair.given_up or pair.config in hopeless)
