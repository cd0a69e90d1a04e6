"""Every planned cell: measured, or in a state with a reason. Only analysis reads results; this is the rest.

What an attempt measured is known from its outcome. Where that was lost, a cell may have a result that is not
known here: the commit is the truth, and analysis lets a result win over a state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from goodput.analysis.schema.base import PRIME
from goodput.analysis.schema.sweep import CellWithoutResult, StatesDocument, TrialState
from goodput.operator import reasons
from goodput.operator.observed import Trial
from goodput.operator.plan.attempts import Pair, gpu_seconds, over
from goodput.operator.plan.view import View
from goodput.runner.contract import Outcome

State = Literal["void", "failed", "pruned", "not_run"]


@dataclass(frozen=True)
class Tally:
    """Number of planned cells by what became of them; ``pending``: not decided yet."""

    measured: int = 0
    void: int = 0
    failed: int = 0
    pruned: int = 0
    not_run: int = 0
    pending: int = 0
    lost: int = 0  # measured, but could not be stored; such a cell is void as well


def measured_loads(pair: Pair, loads: tuple[str, ...]) -> frozenset[str]:
    """Loads that are known to have a result. An outcome whose list was cut says nothing beyond its last entry."""
    known: set[str] = set()
    for _, trial in pair.attempts:
        outcome = trial.memory.outcome
        if outcome is not None:
            known |= set(_covered(outcome, loads)) - {cell.load for cell in outcome.open}
    return frozenset(known)


def _covered(outcome: Outcome, loads: tuple[str, ...]) -> tuple[str, ...]:
    if outcome.more == 0:
        return loads
    last = max((loads.index(cell.load) for cell in outcome.open if cell.load in loads), default=-1)
    return loads[: last + 1]


def without_result(view: View, pair: Pair) -> tuple[CellWithoutResult, ...]:
    """The cells of a decided pair that have no result, as far as is known; empty for an open pair."""
    fate, failure = view.fate(pair)
    if fate in {"open", "done"} or failure is None:
        return ()
    loads = view.sweep.load_ids
    measured = measured_loads(pair, loads)
    default: State = "failed" if fate in {"open", "done"} else fate  # type: ignore[assignment]
    if fate == "failed" and reasons.kind(failure.reason) == "disruption":
        default = "void"
    cells = []
    for load in loads:
        if load not in measured:
            state, reason = _own(pair, load) or (default, failure.reason)
            cell = CellWithoutResult(config=pair.config, load=load, block=pair.block, state=state, reason=reason)
            cells.append(cell)
    return tuple(cells)


def _own(pair: Pair, load: str) -> tuple[State, str] | None:
    """What the latest attempt that was not interrupted says about a cell."""
    for (_, trial), (end, failure) in reversed(tuple(zip(pair.attempts, pair.ends, strict=True))):
        if end in {"interrupted", "live"}:
            continue
        cell = _open_cell(trial, load)
        if cell is not None and cell[0] == "void" and trial.memory.failure is not None and end != "disruption":
            return "failed", trial.memory.failure.reason  # the driver knows the cause
        if cell is not None:
            return cell
        if failure is not None:
            return "void" if end == "disruption" else "failed", failure.reason
    return None


def _open_cell(trial: Trial, load: str) -> tuple[State, str] | None:
    outcome = trial.memory.outcome
    cells = outcome.open if outcome is not None else ()
    return next(((cell.outcome, cell.reason) for cell in cells if cell.load == load), None)


def _measured(view: View) -> Iterator[Pair]:
    """Pairs that have cells: all but those that only fill the compile cache."""
    return (pair for pair in view.pairs.values() if pair.block != PRIME)


def tally(view: View) -> Tally:
    """Count all planned cells."""
    loads = view.sweep.load_ids
    counts: Counter[str] = Counter()
    for pair in _measured(view):
        if not pair.attempts and view.fate(pair)[0] == "open":
            counts["pending"] += len(loads)
            continue
        outcomes = [trial.memory.outcome for _, trial in pair.attempts if trial.memory.outcome is not None]
        counts["lost"] += sum(outcome.lost for outcome in outcomes)
        if pair.done:
            counts["measured"] += len(loads)
            continue
        known = max((outcome.valid for outcome in outcomes), default=0)
        measured = min(len(loads), max(known, len(measured_loads(pair, loads))))
        states = [cell.state for cell in without_result(view, pair)][: len(loads) - measured]
        counts.update(states)
        counts["measured"] += measured
        counts["pending"] += len(loads) - measured - len(states)
    return Tally(**counts)


def states(view: View, generation: int, *, final: bool) -> StatesDocument:
    """``states.json``: what became of every attempt, and of every decided cell that has no result."""
    return StatesDocument(
        generation=generation,
        final=final,
        trials=tuple(_trial_states(view)),
        cells=tuple(cell for pair in _measured(view) for cell in without_result(view, pair)),
    )


def _trial_states(view: View) -> Iterator[TrialState]:
    for pair in view.pairs.values():
        for (trial_id, trial), (_, failure) in zip(pair.attempts, pair.ends, strict=True):
            memory = trial.memory
            begun, ready = memory.server_running, memory.server_ready
            gpus = view.sweep.by_id[pair.config].gpus
            yield TrialState(
                config=pair.config,
                block=pair.block,
                attempt=trial_id.attempt,
                reason=failure.reason if failure is not None else None,
                gpu_seconds=gpu_seconds(view.sweep, trial_id, trial, view.now) if gpus and over(trial) else None,
                start_seconds=None if begun is None or ready is None else max(0.0, ready - begun),
                start_order=memory.order,
            )
