"""The verdict: winner, tie, undecided, infeasible or drift. Pure.

With k feasible configs, the leader is the one with the largest score. For each other config, d_b is the
difference of log block values (leader − other), each at its chosen load, over the n blocks that both have:
mean(d) ± t(1 − 0.05/(2(k − 1)), n − 1)·sd/√n, sd being at least what one request changes. The divisor k − 1 keeps
all k − 1 statements right together with 95 % confidence (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Literal

from goodput.analysis.compare import Against, Comparison, against, compare
from goodput.analysis.drift import sentinel_drift
from goodput.analysis.schema.base import Verdict
from goodput.analysis.score import Contender, Points, Question, Score, block_logs, gpu_divisors, score
from goodput.analysis.stats import mean

Reason = Literal[
    "OnlyFeasible",  # winner: nothing else qualifies
    "Separated",  # winner: every lower limit above zero
    "WithinIndifference",  # tie
    "TooFewBlocks",  # undecided: a pair shares fewer than two blocks
    "IntervalTooWide",  # undecided
    "GpuConfounded",  # undecided: leader and other never ran on the same GPU
    "NoLoadQualifies",  # infeasible
    "NothingMeasured",  # infeasible: there is no valid cell
    "SentinelMoved",  # drift
    "DatasetChanged",  # undecided: cells were measured with different files
]
ALPHA = 0.05


@dataclass(frozen=True)
class Decision:
    """``leader`` has the largest score; ``best`` is what is recommended: the leader, or of a tie the cheapest."""

    verdict: Verdict
    reason: Reason
    scores: Mapping[str, Score]
    leader: str | None = None
    best: str | None = None
    tied: tuple[str, ...] = ()  # with the leader
    comparisons: tuple[Comparison, ...] = ()
    against_reference: Against | None = None
    drift: float | None = None  # change of the sentinel from first to last, on the log scale
    needed: int | None = None  # blocks that would decide, where undecided
    costs: Mapping[str, float] = field(default_factory=dict)  # of the tie break, of feasible configs, where known


def decide(contenders: Sequence[Contender], question: Question, sentinel: Points | None = None) -> Decision:
    """Decide. ``sentinel`` holds the reference's cells of the sentinel blocks, in the order of their names."""
    divisors = gpu_divisors(contenders)
    scores = {each.config: score(each, question, divisors[each.config]) for each in contenders}
    feasible = [each for each in contenders if scores[each.config].value is not None]
    if not feasible:
        measured = any(each.points for each in scores.values())
        return Decision("infeasible", "NoLoadQualifies" if measured else "NothingMeasured", scores)
    logs = {each.config: block_logs(each, scores[each.config], question, divisors[each.config]) for each in feasible}
    leader = min(feasible, key=lambda each: (-_value(scores, each.config), each.config))
    others = sorted(
        (each for each in feasible if each is not leader), key=lambda each: (-_value(scores, each.config), each.config)
    )
    comparisons = tuple(compare(leader, other, logs, question.zone, ALPHA / len(others) / 2) for other in others)
    verdict, reason = _verdict(comparisons, len(logs[leader.config]))
    drift = sentinel_drift(sentinel or {}, scores.get(question.reference), question)
    if drift is not None and abs(drift) > question.zone:
        verdict, reason = "drift", "SentinelMoved"
    costs = {each.config: cost_of(each, scores[each.config]) for each in feasible}
    tied = tuple(each.config for each in comparisons if each.standing == "tied")
    best = cheapest([leader, *(each for each in others if each.config in tied)], scores) if verdict == "tie" else leader
    return Decision(
        verdict,
        reason,
        scores,
        leader=leader.config,
        best=best.config,
        tied=tied,
        comparisons=comparisons,
        against_reference=against(logs, best.config, question.reference),
        drift=drift,
        needed=_needed(comparisons) if reason in {"TooFewBlocks", "IntervalTooWide"} else None,
        costs={name: cost for name, cost in costs.items() if cost is not None},
    )


def doubted(decision: Decision, datasets: AbstractSet[str]) -> Decision:
    """The decision where the cells read these datasets (hashes): with more than one, nothing can be compared."""
    if len(datasets) < 2 or decision.best is None:
        return decision
    return replace(decision, verdict="undecided", reason="DatasetChanged", needed=None)


def cheapest(tied: Sequence[Contender], scores: Mapping[str, Score]) -> Contender:
    """Lowest cost at the chosen load points; where a cost is unknown, the larger score goes first."""

    def key(each: Contender) -> tuple[float, float, str]:
        cost = cost_of(each, scores[each.config])
        return math.inf if cost is None else cost, -_value(scores, each.config), each.config

    return min(tied, key=key)


def cost_of(contender: Contender, score_: Score) -> float | None:
    """Mean cost over the chosen load points; None where one is unknown."""
    costs = [contender.costs.get(point.load) for point in score_.chosen.values()]
    return mean([cost for cost in costs if cost is not None]) if costs and None not in costs else None


def _verdict(comparisons: Sequence[Comparison], leader_blocks: int) -> tuple[Verdict, Reason]:
    if leader_blocks < 2 or any(each.blocks < 2 for each in comparisons):
        return "undecided", "TooFewBlocks"
    if not comparisons:
        return "winner", "OnlyFeasible"
    standings = {each.standing for each in comparisons}
    if "undecided" in standings:
        return "undecided", "IntervalTooWide"
    if any(each.confounded for each in comparisons):
        return "undecided", "GpuConfounded"
    return ("tie", "WithinIndifference") if "tied" in standings else ("winner", "Separated")


def _needed(comparisons: Sequence[Comparison]) -> int | None:
    open_pairs = [each.needed for each in comparisons if each.standing == "undecided"]
    if None in open_pairs:
        return None
    return max((each for each in open_pairs if each is not None), default=2)


def _value(scores: Mapping[str, Score], config: str) -> float:
    value = scores[config].value
    assert value is not None, "only feasible configs are compared"
    return value
