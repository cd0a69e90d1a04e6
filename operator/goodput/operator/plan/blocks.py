"""Blocks: which (block, config) pairs may start a server now, and which blocks have ended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from goodput.operator.actions import Action, Remember
from goodput.operator.plan.attempts import Pair, holds_slot, last_order
from goodput.operator.plan.view import View


def blocks(view: View) -> Iterator[tuple[str, tuple[Pair, ...]]]:
    """All blocks in their order, each with its pairs in the order of their servers."""
    for block, members in groupby(view.sweep.sequence(), key=lambda pair: pair[0]):
        yield block, tuple(view.pairs[member] for member in members)


def candidates(view: View) -> tuple[Pair, ...]:
    """Open pairs without a live attempt in the first block that has not ended."""
    for _, members in blocks(view):
        opened = [pair for pair in members if view.fate(pair)[0] == "open"]
        if opened:
            return tuple(pair for pair in opened if not pair.live)
    return ()


def new_trials(view: View) -> Iterator[Action]:
    """Memories of the trials that the free slots can take."""
    if view.policy.suspend or view.stop is not None:
        return
    trials = view.observed.trials
    free = view.policy.parallelism - sum(holds_slot(trial) for trial in trials.values())
    if view.policy.max_trials is not None:
        free = min(free, view.policy.max_trials - len(trials))
    order = last_order(tuple(trials.values()))
    for number, pair in enumerate(candidates(view)[: max(0, free)], start=1):
        yield Remember(pair.next, order + number)


def ended_blocks(view: View) -> tuple[str, ...]:
    """Measured blocks (no sentinels) in which every pair is done, failed or pruned, in their order."""
    sentinels = set(view.sweep.sentinels)
    return tuple(
        block
        for block, members in blocks(view)
        if block not in sentinels and all(view.fate(pair)[0] != "open" for pair in members)
    )
