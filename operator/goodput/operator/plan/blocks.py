"""Blocks: which (block, config) pairs may start a server now, and which blocks have ended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from goodput.analysis.schema.base import PRIME
from goodput.operator.actions import Action, Remember
from goodput.operator.observed import Trial
from goodput.operator.plan.attempts import Pair, holds_slot, last_order, runner_active
from goodput.operator.plan.view import View
from goodput.operator.sweep import TrialId


def blocks(view: View) -> Iterator[tuple[str, tuple[Pair, ...]]]:
    """All blocks in their order, each with its pairs in the order of their servers."""
    for block, members in groupby(view.pairs, key=lambda pair: pair[0]):
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
    for number, pair in enumerate(_free_of_others(view)[: max(0, free)], start=1):
        yield Remember(pair.next, order + number)


def _free_of_others(view: View) -> list[Pair]:
    """Candidates but those whose external server is in use, or is another candidate's: one trial at a time there."""
    trials = view.observed.trials.items()
    used = {view.sweep.address(trial_id.config) for trial_id, trial in trials if _uses_server(view, trial_id, trial)}
    free: list[Pair] = []
    for pair in candidates(view):
        address = view.sweep.address(pair.config)
        if address is None or address not in used:
            free.append(pair)
            used.add(address)
    return free


def _uses_server(view: View, trial_id: TrialId, trial: Trial) -> bool:
    """A runner that was told to go may still send, whatever became of its slot; one that only uploads does not."""
    sends = runner_active(trial) and trial.memory.released is None
    return trial_id.config in view.sweep.by_id and (holds_slot(trial) or sends)


def ended_blocks(view: View) -> tuple[str, ...]:
    """Measured blocks (no sentinels, no primes) in which every pair is done, failed or pruned, in their order."""
    unmeasured = {*view.sweep.sentinels, PRIME}
    return tuple(
        block
        for block, members in blocks(view)
        if block not in unmeasured and all(view.fate(pair)[0] != "open" for pair in members)
    )
