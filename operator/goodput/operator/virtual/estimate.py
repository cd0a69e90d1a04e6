"""What a sweep is expected to take and to find: its first block simulated, the other blocks taken to be like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goodput.analysis.metrics import most_frequent
from goodput.analysis.schema.cell import CellDocument
from goodput.analysis.schema.planned import Config, Load
from goodput.operator.observed import Failure
from goodput.operator.sweep import Sweep, TrialId
from goodput.operator.trialplan import trial_plan
from goodput.operator.virtual.engines import Simulator, StartRefusedError
from goodput.operator.virtual.trials import URL
from goodput.runner.contract import ServerFacts
from goodput.runner.errors import RunnerError
from goodput.runner.summary import Summary
from goodput.runner.virtual.trial import measure

Quantiles = dict[float, float]


@dataclass(frozen=True)
class Forecast:
    """One cell. ``summary`` None: nothing could be simulated, the document's reason says why."""

    load: Load
    document: CellDocument
    summary: Summary | None

    @property
    def attainment(self) -> float:
        """Share of good requests, 0 where there is none."""
        return 0.0 if self.summary is None else self.summary.attainment or 0.0

    @property
    def meets_slo(self) -> bool:
        """It could supply a score: valid, not saturated, enough requests good."""
        document = self.document
        stands = document.outcome == "valid" and document.load_state != "saturated"
        return stands and self.attainment >= document.slo.attainment


@dataclass(frozen=True)
class ConfigForecast:
    """One config. ``seconds``: warm-up, cells and their drains of one trial; ``failure``: it would not start."""

    config: Config
    seconds: float
    cells: tuple[Forecast, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True)
class SweepForecast:
    """The whole sweep. Seconds of wall time on one server at a time; GPU hours.

    Attributes:
        configs: in the plan's order.
        starts_seconds: all server starts, cold or warm as the compile cache has it.
        trials_seconds: everything between Ready and the end of a trial, over all trials.
        wall_seconds: with the planned parallelism.
    """

    configs: tuple[ConfigForecast, ...]
    starts: int
    starts_seconds: float
    trials_seconds: float
    wall_seconds: float
    gpu_hours: float


def estimate(sweep: Sweep, simulator: Simulator) -> SweepForecast:
    """Simulate one trial of each config, and count every planned trial."""
    block = sweep.blocks[0]
    found = {config.id: _trial(sweep, simulator, config, block) for config in sweep.configs}
    starts = trials = gpu = 0.0
    for each, config_id in sweep.sequence():
        forecast = found[config_id]
        config = forecast.config
        start = 0.0
        if forecast.failure is None:
            start = simulator.start_seconds(config, compiles=simulator.compiles(config))
        seconds = 0.0 if TrialId(each, config_id, 1).primes else forecast.seconds  # such a start measures nothing
        starts, trials = starts + start, trials + seconds
        gpu += (start + seconds) * config.gpus
    servers = min(sweep.spec.plan.parallelism, len(sweep.configs))
    return SweepForecast(
        configs=tuple(found.values()),
        starts=len(sweep.sequence()),
        starts_seconds=starts,
        trials_seconds=trials,
        wall_seconds=(starts + trials) / servers,
        gpu_hours=gpu / 3600,
    )


def _trial(sweep: Sweep, simulator: Simulator, config: Config, block: str) -> ConfigForecast:
    try:
        engine = simulator.start(config, 0.0)
    except StartRefusedError as error:
        return ConfigForecast(config, 0.0, failure=error.failure)
    facts = ServerFacts(url=URL, order=1, expects={})
    plan = trial_plan(sweep, TrialId(block, config.id, 1), facts)
    plan = plan.model_copy(update={"server": facts})
    cells: list[Forecast] = []
    seconds = 0.0
    try:
        for cell in measure(plan, engine, simulated=simulator.describe(config)):
            concluded = cell.made.concluded
            cells.append(Forecast(cell.planned.load, concluded.document, concluded.summary))
            seconds = cell.ended_seconds
    except RunnerError as error:
        return ConfigForecast(config, seconds, tuple(cells), Failure(error.reason, str(error)))
    return ConfigForecast(config, seconds, tuple(cells))


def warnings(forecast: SweepForecast) -> list[str]:
    """Configs that would be measured for nothing, as far as the model goes. None of them is left out of the sweep."""
    found = []
    for one in forecast.configs:
        if one.failure is not None:
            found.append(f"{one.config.label} would fail: {one.failure.reason}: {one.failure.message}")
        elif not any(cell.meets_slo for cell in one.cells):
            nearest = max(one.cells, key=lambda cell: cell.attainment)
            why = ", saturated" if nearest.document.load_state == "saturated" else ""
            found.append(
                f"{one.config.label} meets the SLO at no planned load: "
                f"nearest is {nearest.load.label} with {nearest.attainment:.1%} of requests good{why}"
            )
    return found


def rows(forecast: SweepForecast) -> Sequence[tuple[str, ...]]:
    """A table's lines: config, load, goodput, attainment, median and p99 of TTFT and TPOT, state."""
    lines = []
    for one in forecast.configs:
        for cell in one.cells:
            summary, document = cell.summary, cell.document
            ttft, tpot = ({}, {}) if summary is None else (summary.ttft, summary.tpot)
            goodput, attained = (None, None) if summary is None else (summary.goodput, summary.attainment)
            lines.append(
                (
                    one.config.label,
                    cell.load.label,
                    "–" if goodput is None else f"{goodput:.3g}",
                    "–" if attained is None else f"{attained:.1%}",
                    _milliseconds(ttft),
                    _milliseconds(tpot),
                    _state(document),
                )
            )
    return lines


def _state(document: CellDocument) -> str:
    if document.outcome != "valid":
        return f"void: {document.reason}"
    counts = document.counts
    if counts is not None and counts.attempted and not counts.completed:
        return f"no request completed: {most_frequent([counts.reasons])}"
    return document.load_state


def _milliseconds(quantiles: Quantiles) -> str:
    return " / ".join(f"{quantiles[share] * 1000:.4g}" for share in sorted(quantiles)) or "–"
