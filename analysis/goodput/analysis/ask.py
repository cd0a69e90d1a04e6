"""From judged cells to the question that `decide` answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from goodput.analysis import stats
from goodput.analysis.cells import Cell
from goodput.analysis.planned import is_sentinel
from goodput.analysis.result import load_order, shape
from goodput.analysis.schema.planned import Slo
from goodput.analysis.schema.sweep import SpecDocument, StatesDocument
from goodput.analysis.score import BlockValue, Contender, Question


def question(spec: SpecDocument, slo: Slo) -> Question:
    """What the spec asks, under ``slo``."""
    shapes: dict[str, list[str]] = {}
    for load in sorted(spec.loads, key=load_order):
        shapes.setdefault(shape(load), []).append(load.id)
    return Question(
        shapes={name: tuple(loads) for name, loads in shapes.items()},
        attainment=slo.attainment,
        indifference=spec.indifference,
        reference=spec.reference,
        objective=spec.objective,
    )


def contenders(spec: SpecDocument, states: StatesDocument, cells: Sequence[Cell]) -> list[Contender]:
    """One per config of the spec, in its order, measured or not; without the sentinel's cells."""
    by_config: dict[str, list[Cell]] = {config.id: [] for config in spec.configs}
    for cell in cells:
        if not is_sentinel(cell.document.key.block):
            by_config[cell.document.key.config].append(cell)
    return [
        Contender(
            config.id, _points(by_config[config.id]), config.gpus, _costs(spec, states, config.id, by_config[config.id])
        )
        for config in spec.configs
    ]


def sentinel(cells: Sequence[Cell]) -> dict[str, dict[str, BlockValue]]:
    """The sentinel's cells: load id → block → value."""
    return _points([cell for cell in cells if is_sentinel(cell.document.key.block)])


def _points(cells: Iterable[Cell]) -> dict[str, dict[str, BlockValue]]:
    points: dict[str, dict[str, BlockValue]] = {}
    for cell in cells:
        points.setdefault(cell.document.key.load, {})[cell.document.key.block] = cell.block_value()
    return points


def _costs(spec: SpecDocument, states: StatesDocument, config: str, cells: Sequence[Cell]) -> dict[str, float]:
    """What the tie break compares, by load point.

    gpuSeconds: mean over the config's trials that gave a valid cell, the same at every load point. ttftP95, tpotP95:
    mean of the block values, open loop from the planned send time.
    """
    if spec.tie_break == "gpuSeconds":
        served = {(cell.document.key.block, cell.document.attempt) for cell in cells}
        spent = [
            trial.gpu_seconds
            for trial in states.trials
            if trial.config == config and (trial.block, trial.attempt) in served and trial.gpu_seconds is not None
        ]
        mean = stats.mean(spent)
        return {} if not mean else {load.id: mean for load in spec.loads}
    costs: dict[str, list[float]] = {}
    for cell in cells:
        name = "tpot" if spec.tie_break == "tpotP95" else _ttft(cell)
        if name in cell.latencies:
            costs.setdefault(cell.document.key.load, []).append(cell.latencies[name].percentiles["p95"].value)
    return {load: value for load, values in costs.items() if (value := stats.mean(values)) is not None}


def _ttft(cell: Cell) -> str:
    return "ttft" if cell.document.load.arrival == "closed" else "scheduled_ttft"
