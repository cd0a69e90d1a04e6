"""The decision in words: one or two sentences that a person can act on. Pure."""

from __future__ import annotations

import math

from goodput.analysis.compare import Comparison
from goodput.analysis.decide import Decision, Reason
from goodput.analysis.failure_words import failed_loads, nothing_completed
from goodput.analysis.formats import interval, number, per_cent
from goodput.analysis.result import AnalysisResult, shape
from goodput.analysis.score import Point


def unit(result: AnalysisResult) -> str:
    """Of the score."""
    per_gpu = " per GPU" if len({max(config.gpus, 1) for config in result.spec.configs}) > 1 else ""
    return ("good requests/s" if result.spec.objective == "goodput" else "output tokens/s") + per_gpu


def headline(result: AnalysisResult) -> str:
    """Leader, score and verdict in one line."""
    decision = result.decision
    if decision.best is None:
        return f"{decision.verdict}: no config meets the SLO"
    loads = ", ".join(result.loads[load].label for load in result.chosen(decision.best))
    score = decision.scores[decision.best].value
    label = result.name(decision.best)
    return f"{label}: {number(score)} {unit(result)}{interval(result.interval)} at {loads} [{decision.verdict}]"


def explain(result: AnalysisResult) -> str:
    """Why the verdict is what it is, and what would change it."""
    decision = result.decision
    sentences = [_WHY[decision.reason](result)]
    if decision.against_reference is not None:
        against = decision.against_reference
        limits = "" if against.low is None else f" ({per_cent(against.low)} to {per_cent(against.high)})"
        sentences.append(f"Against the reference: {per_cent(against.change, signed=True)}{limits}.")
    if decision.verdict in {"winner", "tie", "undecided"} and any(each.floored for each in decision.comparisons):
        sentences.append(
            "Some block differences spread by less than one request changes them: one request's spread was taken."
        )
    left_out = [each for each in decision.scores.values() if each.value is None]
    if left_out and decision.leader is not None:
        unmeasured = sum(not each.points for each in left_out)
        sentences.append(f"Not compared: {len(left_out) - unmeasured} infeasible, {unmeasured} without a valid cell.")
    sentences += [words for words in (failed_loads(result), _bounded(result)) if words is not None]
    return " ".join(sentences)


def _bounded(result: AnalysisResult) -> str | None:
    """A sentence where the named config keeps the SLO at the highest planned load: it might take more."""
    if result.decision.best is None:
        return None
    highest = {shape(load): load for load in result.loads.values() if load.arrival != "burst"}
    chosen = result.chosen(result.decision.best)
    labels = ", ".join(load.label for load in highest.values() if load.id in chosen)
    if not labels:
        return None
    return (
        f"{_best(result)} keeps the SLO at the highest planned load ({labels}): the score is bounded by what was "
        "offered, and says nothing of its capacity. Plan higher loads, until one breaks the SLO."
    )


def _only(result: AnalysisResult) -> str:
    return f"{_best(result)} is the only config that keeps the SLO."


def _separated(result: AnalysisResult) -> str:
    closest = min(result.decision.comparisons, key=lambda each: each.low or 0.0)
    return (
        f"{_best(result)} is better than each of {len(result.decision.comparisons)} others with 95 % confidence; "
        f"closest: {_pair(result, closest)}."
    )


def _tie(result: AnalysisResult) -> str:
    decision = result.decision
    names = [decision.leader, *decision.tied]
    labels = ", ".join(result.name(name) for name in names if name is not None)
    known = "the cheapest" if _cost_known(result) else "the first with the largest score, the tie break being unknown"
    return (
        f"No difference beyond {per_cent(result.spec.indifference)} between {labels}; named is "
        f"{known} (tie break {result.spec.tie_break}): {_best(result)}."
    )


def _few(result: AnalysisResult) -> str:
    return f"{_best(result)} leads, but fewer than two blocks are shared; at least {result.decision.needed} are needed."


def _wide(result: AnalysisResult) -> str:
    decision = result.decision
    open_ = [each for each in decision.comparisons if each.standing == "undecided"]
    closest = max(open_, key=lambda each: each.high or 0.0)
    needed = "no number of blocks in reach" if decision.needed is None else f"about {decision.needed} blocks"
    return (
        f"{_best(result)} leads, but {len(open_)} of {len(decision.comparisons)} others may still be better or equal; "
        f"widest: {_pair(result, closest)}. At the present spread {needed} would decide."
    )


def _confounded(result: AnalysisResult) -> str:
    names = [result.name(each.config) for each in result.decision.comparisons if each.confounded]
    return f"{_best(result)} leads, but never ran on the same GPU as {', '.join(names)}: the GPU may be the difference."


def _no_load(result: AnalysisResult) -> str:
    missed = nearest_miss(result.decision)
    if missed is None:
        return "No config has a valid cell at a load point that keeps the SLO for every shape."
    if (reason := nothing_completed(result)) is not None:
        return f"No request of any config completed, most often: {reason}."
    config, point = missed
    state = ", saturated" if point.saturated else ""
    return (
        f"No config keeps the SLO for {per_cent(result.slo.attainment)} of requests without saturating. Nearest: "
        f"{result.name(config)} at {result.loads[point.load].label} with {per_cent(point.attainment)}{state}."
    )


def _nothing(_: AnalysisResult) -> str:
    return "There is no valid cell yet."


def _drift(result: AnalysisResult) -> str:
    change = math.expm1(result.decision.drift or 0.0)
    return (
        f"The sentinel changed by {per_cent(change, signed=True)} while the sweep ran, beyond "
        f"{per_cent(result.spec.indifference)}: differences between configs cannot be trusted. {_best(result)} leads."
    )


def _changed(result: AnalysisResult) -> str:
    return (
        "The file of the dataset changed while the sweep ran (dataset_sha256 in the table of cells): differences "
        f"between configs cannot be trusted. {_best(result)} leads. Keep the file as it is, and run the sweep again."
    )


_WHY = {
    "OnlyFeasible": _only,
    "Separated": _separated,
    "WithinIndifference": _tie,
    "TooFewBlocks": _few,
    "IntervalTooWide": _wide,
    "GpuConfounded": _confounded,
    "NoLoadQualifies": _no_load,
    "NothingMeasured": _nothing,
    "SentinelMoved": _drift,
    "DatasetChanged": _changed,
}
assert set(_WHY) == set(Reason.__args__)  # type: ignore[attr-defined]


def nearest_miss(decision: Decision) -> tuple[str, Point] | None:
    """Config and load point with the largest attainment, unsaturated ones first; None where none missed."""
    points = [(each.config, point) for each in decision.scores.values() for point in each.points if not point.qualifies]
    return max(points, key=lambda pair: (not pair[1].saturated, pair[1].attainment or 0.0, pair[1].value), default=None)


def _best(result: AnalysisResult) -> str:
    assert result.decision.best is not None
    return result.name(result.decision.best)


def _pair(result: AnalysisResult, each: Comparison) -> str:
    limits = "" if each.low is None else f" ({per_cent(each.ahead_low)} to {per_cent(each.ahead_high)})"
    ahead = per_cent(each.ahead, signed=True)
    return f"{result.name(each.config)}, {ahead}{limits} over {each.blocks} blocks"


def _cost_known(result: AnalysisResult) -> bool:
    decision = result.decision
    return all(name in decision.costs for name in (decision.leader, *decision.tied))
