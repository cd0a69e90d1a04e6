"""One look, digested: the attempts of every (block, config), what rules configs out, why nothing starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from goodput.analysis.schema.base import PRIME
from goodput.operator.clock import Clock
from goodput.operator.observed import Failure, Observed, Trial
from goodput.operator.plan import budget, primes, pruning
from goodput.operator.plan.attempts import Pair, pairs, sorted_trials
from goodput.operator.plan.policy import Policy
from goodput.operator.plan.trials import closed
from goodput.operator.reasons import PRUNED_BY
from goodput.operator.sweep import Sweep, TrialId

Fate = Literal["open", "done", "failed", "pruned", "not_run"]


@dataclass(frozen=True)
class View:
    """Everything that the policies share. ``stop``: why no further server is started."""

    sweep: Sweep
    policy: Policy
    observed: Observed
    now: float
    clock: Clock
    pairs: Mapping[tuple[str, str], Pair]
    failed: Mapping[str, Failure]
    pruned: Mapping[str, str]
    failed_configs: frozenset[str]
    spent: budget.Spent
    stop: Failure | None

    @cached_property
    def trials(self) -> tuple[tuple[TrialId, Trial], ...]:
        """All trials by block, config and attempt."""
        return sorted_trials(self.observed.trials)

    @cached_property
    def unclosed(self) -> tuple[tuple[TrialId, Trial], ...]:
        """Trials for which something is left to be done."""
        return tuple((trial_id, trial) for trial_id, trial in self.trials if not closed(trial, self.now))

    @cached_property
    def fates(self) -> Mapping[tuple[str, str], tuple[Fate, Failure | None]]:
        """What becomes of every pair; ``open``: an attempt is live, or there will be one."""
        return {key: self._fate(pair) for key, pair in self.pairs.items()}

    def fate(self, pair: Pair) -> tuple[Fate, Failure | None]:
        """What becomes of a pair, with the reason where that is not ``done``."""
        return self.fates[pair.block, pair.config]

    def _fate(self, pair: Pair) -> tuple[Fate, Failure | None]:  # noqa: PLR0911 - one return per case
        if pair.live:
            return "open", None
        if pair.done:
            return "done", None
        if pair.config in self.failed:
            return "failed", pair.last_failure or self.failed[pair.config]
        if pair.config in self.pruned:
            return "pruned", Failure(f"{PRUNED_BY}{self.pruned[pair.config]}")
        if pair.given_up is not None:
            return "failed", pair.given_up
        if self.stop is not None:
            return "not_run", self.stop
        return "open", None

    def unwanted(self, config: str) -> Failure | None:
        """Why a trial of this config that has no runner yet is not to go on."""
        if config in self.failed:
            return self.failed[config]
        if config in self.pruned:
            return Failure(f"{PRUNED_BY}{self.pruned[config]}")
        if self.stop is not None and self.stop.reason in budget.ENDS_WAITING_SERVERS:
            return self.stop
        return None

    @cached_property
    def decided(self) -> bool:
        """No pair is open: what is left is the final analysis."""
        return all(fate != "open" for fate, _ in self.fates.values())


def look(sweep: Sweep, observed: Observed, now: float) -> View:
    """Digest one look."""
    policy = Policy.of(sweep)
    clock = Clock.read(observed.status, now).turned(suspend=policy.suspend and not policy.cancel, now=now)
    filling = ((PRIME, config) for group in primes.fillers(sweep) for config in group)
    found = pairs([*filling, *sweep.sequence()], observed.trials, policy.retries)
    failed = pruning.failed_configs(sweep, found.values())
    pruned = pruning.pruned_configs(sweep, failed, _measured(found))
    for key in tuple(primes.spare(sweep, found, failed.keys() | pruned.keys())):
        del found[key]
    failed_configs = frozenset(failed) | _given_up(found)
    used = budget.spent(sweep, observed.trials, clock, len(failed_configs), now)
    finishing = any(analysis.block is None for analysis in observed.analyses.values())
    return View(
        sweep=sweep,
        policy=policy,
        observed=observed,
        now=now,
        clock=clock,
        pairs=found,
        failed=failed,
        pruned=pruned,
        failed_configs=failed_configs,
        spent=used,
        stop=budget.stop(policy, used, finishing=finishing),
    )


def _measured(found: Mapping[tuple[str, str], Pair]) -> frozenset[str]:
    """Configs with at least one valid cell."""
    outcomes = ((pair.config, trial.memory.outcome) for pair in found.values() for _, trial in pair.attempts)
    return frozenset(config for config, outcome in outcomes if outcome is not None and outcome.valid > 0)


def _given_up(found: Mapping[tuple[str, str], Pair]) -> frozenset[str]:
    """Configs that used up their attempts in some block without one valid cell there."""
    return frozenset(
        pair.config
        for pair in found.values()
        if pair.given_up is not None
        and pair.block != PRIME  # its configs are measured all the same, and their logs say that they compiled
        and all(trial.memory.outcome is None or trial.memory.outcome.valid == 0 for _, trial in pair.attempts)
    )
