"""Retries: what each attempt of a (block, config) came to, and whether there is another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from goodput.operator import reasons
from goodput.operator.observed import Failure, Trial
from goodput.operator.plan.limits import MAX_DISRUPTIONS
from goodput.operator.sweep import Sweep, TrialId
from goodput.runner.contract import Outcome

End = Literal["live", "done", "interrupted", "deterministic", "disruption", "transient"]
"""What an attempt came to; ``live``: it is not over yet."""


def holds_slot(trial: Trial) -> bool:
    """A server of this trial exists, may exist, or is about to be started."""
    memory = trial.memory
    leaving = memory.ended is not None or memory.released is not None
    return trial.server is not None or memory.server_gone is None or not leaving


def runner_active(trial: Trial) -> bool:
    """A runner is there that has not ended. One that left its outcome has, though its pod may still be seen."""
    runner = trial.runner
    return runner is not None and runner.outcome is None and runner.state in {"pending", "running", "stopping"}


def over(trial: Trial) -> bool:
    """Nothing more will happen in this attempt: ended, its outcome on record, its runner ended, its server gone."""
    unnoted = trial.memory.outcome is None and trial.runner is not None and trial.runner.outcome is not None
    return trial.memory.ended is not None and not unnoted and not runner_active(trial) and not holds_slot(trial)


def judge(trial: Trial) -> tuple[End, Failure | None]:
    """What an attempt came to, with the reason where that is not ``done``."""
    memory = trial.memory
    if not over(trial):
        return "live", None
    if memory.outcome is not None and memory.outcome.done:
        return "done", None
    if memory.interrupted:
        return "interrupted", memory.failure
    if memory.failure is not None:
        return _end(memory.failure.reason), memory.failure
    if memory.outcome is not None and memory.outcome.open:
        return _of_open_cells(memory.outcome)
    return "transient", Failure("RunnerFailed", "the runner left no outcome")


def _of_open_cells(outcome: Outcome) -> tuple[End, Failure]:
    """The gravest of the open cells decides: deterministic, then transient, then disruption."""
    last = outcome.open[-1].reason  # what ended the trial early left the last cells open
    ends = {
        _end(cell.reason): Failure(
            cell.reason, (outcome.why if cell.reason == last else "") or reasons.text(cell.reason)
        )
        for cell in reversed(outcome.open)
    }
    for end in ("deterministic", "transient"):
        if end in ends:
            return end, ends[end]
    return "disruption", ends["disruption"]


def _end(reason: str) -> End:
    kind = reasons.kind(reason)
    return kind if kind in {"deterministic", "disruption"} else "transient"


@dataclass(frozen=True)
class Pair:
    """One config in one block: all its attempts so far, in order."""

    block: str
    config: str
    retries: int
    attempts: tuple[tuple[TrialId, Trial], ...] = ()

    @cached_property
    def ends(self) -> tuple[tuple[End, Failure | None], ...]:
        """What every attempt came to."""
        return tuple(judge(trial) for _, trial in self.attempts)

    @property
    def live(self) -> bool:
        """An attempt is not over."""
        return any(end == "live" for end, _ in self.ends)

    @property
    def done(self) -> bool:
        """All cells have a result."""
        return any(end == "done" for end, _ in self.ends)

    @property
    def deterministic(self) -> Failure | None:
        """A failure that every further attempt would meet again."""
        return next((failure for end, failure in self.ends if end == "deterministic"), None)

    @property
    def given_up(self) -> Failure | None:
        """Why there is no further attempt, once the retries or the disruptions are used up."""
        kinds = [end for end, _ in self.ends]
        used_up = kinds.count("transient") > self.retries or kinds.count("disruption") >= MAX_DISRUPTIONS
        return self.last_failure if used_up else None

    @property
    def last_failure(self) -> Failure | None:
        """Why the latest attempt that was not interrupted did not do it."""
        failed = [failure for end, failure in self.ends if end not in {"live", "done", "interrupted"}]
        return failed[-1] if failed else None

    @property
    def next(self) -> TrialId:
        """The next attempt."""
        last = max((trial_id.attempt for trial_id, _ in self.attempts), default=0)
        return TrialId(block=self.block, config=self.config, attempt=last + 1)


def pairs(
    keys: Iterable[tuple[str, str]], trials: Mapping[TrialId, Trial], retries: int
) -> dict[tuple[str, str], Pair]:
    """Every (block, config) with its attempts, in the order of the keys, which is that of the starts."""
    attempts: dict[tuple[str, str], list[tuple[TrialId, Trial]]] = {key: [] for key in keys}
    for trial_id, trial in sorted_trials(trials):
        if (trial_id.block, trial_id.config) in attempts:
            attempts[trial_id.block, trial_id.config].append((trial_id, trial))
    return {
        (block, config): Pair(block=block, config=config, retries=retries, attempts=tuple(found))
        for (block, config), found in attempts.items()
    }


def sorted_trials(trials: Mapping[TrialId, Trial]) -> tuple[tuple[TrialId, Trial], ...]:
    """Trials by block, config and attempt."""
    return tuple(sorted(trials.items(), key=lambda item: (item[0].block, item[0].config, item[0].attempt)))


def gpu_seconds(sweep: Sweep, trial_id: TrialId, trial: Trial, now: float) -> float:
    """Time between the server's running and its end, times the GPUs of its config."""
    memory = trial.memory
    if memory.server_running is None or trial_id.config not in sweep.by_id:
        return 0.0
    until = memory.server_gone if memory.server_gone is not None else now
    return max(0.0, until - memory.server_running) * sweep.by_id[trial_id.config].gpus


def last_order(trials: Sequence[Trial]) -> int:
    """Number of the latest server start."""
    return max((trial.memory.order for trial in trials), default=0)
