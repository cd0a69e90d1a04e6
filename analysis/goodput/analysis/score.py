"""The score of a config: its best load point that keeps the SLO, one per shape. Pure.

Score for a shape = largest mean of block values over unsaturated load points whose attainment, Σ good over
Σ attempted, reaches the target; per GPU where GPU counts differ. Several shapes: geometric mean. A load point is
saturated when at least half of its valid cells are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Objective = Literal["goodput", "outputThroughput"]


@dataclass(frozen=True)
class BlockValue:
    """What one valid cell says: counts of its window, and on which GPU it ran."""

    good: int
    attempted: int
    window_seconds: float
    saturated: bool = False
    output_tokens: int | None = None  # delivered inside the window
    gpu: str | None = None

    def value(self, objective: Objective) -> float | None:
        """Good requests, or delivered output tokens, per second of the window."""
        amount = self.good if objective == "goodput" else self.output_tokens
        return None if amount is None else amount / self.window_seconds

    def log_value(self, objective: Objective) -> float | None:
        """log((good + 0.5)/W); None, so that the block leaves the pairing, where nothing was good (delivered)."""
        if objective == "goodput":
            return math.log((self.good + 0.5) / self.window_seconds) if self.good else None
        return math.log(self.output_tokens / self.window_seconds) if self.output_tokens else None

    def step(self, objective: Objective) -> float:
        """About what one request more or less changes `log_value` by: its share of the requests that make it up."""
        return 1 / ((self.good if objective == "goodput" else self.attempted) + 0.5)


@dataclass(frozen=True)
class BlockLog:
    """A config in one block, on the log scale: the datum of every comparison, and what one request changes it by."""

    value: float
    step: float


Points = Mapping[str, Mapping[str, BlockValue]]  # load id → block → value


@dataclass(frozen=True)
class Contender:
    """One config with all its valid cells (sentinel blocks are not among them)."""

    config: str
    points: Points
    gpus: int = 0
    costs: Mapping[str, float] = field(default_factory=dict)  # load id → what the tie break compares; less is better


@dataclass(frozen=True)
class Question:
    """What is asked of the contenders."""

    shapes: Mapping[str, tuple[str, ...]]  # shape → its load ids, ascending
    attainment: float
    indifference: float
    reference: str
    objective: Objective = "goodput"

    @property
    def zone(self) -> float:
        """Half-width of the indifference zone on the log scale."""
        return math.log1p(self.indifference)


@dataclass(frozen=True)
class Point:
    """One load point of one config over its blocks."""

    load: str
    blocks: int
    value: float  # mean of block values, per GPU where GPU counts differ
    attainment: float | None
    saturated: bool
    qualifies: bool


@dataclass(frozen=True)
class Score:
    """A config's score. Infeasible (``value`` None) where a shape has no load point that qualifies."""

    config: str
    value: float | None
    chosen: Mapping[str, Point]  # shape → the load point that supplies the score
    points: tuple[Point, ...]  # all that were measured


def gpu_divisors(contenders: Iterable[Contender]) -> dict[str, int]:
    """What each config's values are divided by: its GPU count where counts differ, else 1."""
    gpus = {contender.config: max(contender.gpus, 1) for contender in contenders}
    return gpus if len(set(gpus.values())) > 1 else dict.fromkeys(gpus, 1)


def score(contender: Contender, question: Question, divisor: int = 1) -> Score:
    """Score ``contender``. Of two load points with equal values the earlier (lower) one is chosen."""
    points = {
        load: point
        for loads in question.shapes.values()
        for load in loads
        if (point := _point(load, contender.points.get(load, {}), question, divisor)) is not None
    }
    chosen: dict[str, Point] = {}
    for shape, loads in question.shapes.items():
        fit = [points[load] for load in loads if load in points and points[load].qualifies]
        if fit:
            chosen[shape] = max(fit, key=lambda point: point.value)
    feasible = bool(chosen) and len(chosen) == len(question.shapes)
    value = geometric_mean([point.value for point in chosen.values()]) if feasible else None
    return Score(contender.config, value, chosen, tuple(points.values()))


def geometric_mean(values: list[float]) -> float:
    """Of positive values; at least one."""
    return values[0] if len(values) == 1 else math.exp(math.fsum(map(math.log, values)) / len(values))


def block_logs(contender: Contender, score_: Score, question: Question, divisor: int = 1) -> dict[str, BlockLog]:
    """Block → log value at the chosen load points, mean over shapes. Blocks that lack one are left out."""
    logs: dict[str, list[BlockLog]] = {}
    for point in score_.chosen.values():
        for block, cell in contender.points[point.load].items():
            value = cell.log_value(question.objective)
            if value is not None:
                log = BlockLog(value - math.log(divisor), cell.step(question.objective))
                logs.setdefault(block, []).append(log)
    return {block: _mean_log(each) for block, each in logs.items() if len(each) == len(score_.chosen)}


def _mean_log(shapes: list[BlockLog]) -> BlockLog:
    """Mean over shapes; a request more or less in each of them, independently."""
    value = math.fsum(each.value for each in shapes) / len(shapes)
    return BlockLog(value, math.hypot(*(each.step for each in shapes)) / len(shapes))


def _point(load: str, blocks: Mapping[str, BlockValue], question: Question, divisor: int) -> Point | None:
    values = [value for cell in blocks.values() if (value := cell.value(question.objective)) is not None]
    if not values:
        return None
    attempted = sum(cell.attempted for cell in blocks.values())
    attainment = sum(cell.good for cell in blocks.values()) / attempted if attempted else None
    saturated = 2 * sum(cell.saturated for cell in blocks.values()) >= len(blocks)
    value = math.fsum(values) / len(values) / divisor
    reached = attainment is not None and attainment >= question.attainment
    return Point(load, len(values), value, attainment, saturated, reached and not saturated and value > 0)
