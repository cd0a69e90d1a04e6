"""What one analysis knows: the sweep's documents, its judged cells and the decision. Tables and report show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from goodput.analysis.cells import Cell
from goodput.analysis.decide import Decision
from goodput.analysis.outputs import Equality, equality
from goodput.analysis.planned import PlannedCell, block_order, is_sentinel
from goodput.analysis.schema.planned import Config, Load, Slo
from goodput.analysis.schema.sweep import SpecDocument, StatesDocument
from goodput.analysis.stats import Interval

Key = tuple[str, str]  # config id, load id


@dataclass(frozen=True)
class AnalysisResult:
    """Everything that tables, report and answer are made of. ``slo`` may differ from the spec's."""

    spec: SpecDocument
    states: StatesDocument
    slo: Slo
    cells: tuple[Cell, ...]  # valid cells, sentinels among them
    planned: tuple[PlannedCell, ...]
    decision: Decision
    interval: Interval | None = None  # 95 % of the best config's score

    @cached_property
    def configs(self) -> Mapping[str, Config]:
        """By id."""
        return {config.id: config for config in self.spec.configs}

    @cached_property
    def _names(self) -> Mapping[str, str]:
        short = {
            config.id: config.label if self.many_engines else config.label.removeprefix(f"{config.engine} ")
            for config in self.spec.configs
        }
        unique = len(set(short.values())) == len(short)
        return short if unique else {config: f"{name} [{config}]" for config, name in short.items()}

    def name(self, config: str) -> str:
        """Short name of a config among these: its swept flags, and its engine where there are several."""
        return self._names[config]

    @cached_property
    def equality(self) -> Mapping[str, Equality]:
        """Config → whether it answers as the reference does; empty where that was not checked."""
        return equality(self.cells, self.spec.reference)

    @cached_property
    def many_engines(self) -> bool:
        """More than one engine is compared: tables show it in a column of its own."""
        return len({config.engine for config in self.spec.configs}) > 1

    def engine_and_flags(self, config: str) -> tuple[str, str]:
        """The name in two columns; – where no flag is swept."""
        engine = self.configs[config].engine
        return engine, self._names[config].removeprefix(engine).strip() or "–"

    @cached_property
    def loads(self) -> Mapping[str, Load]:
        """By id, ascending."""
        return {load.id: load for load in sorted(self.spec.loads, key=load_order)}

    @cached_property
    def measured(self) -> Mapping[Key, tuple[Cell, ...]]:
        """Valid cells of each config and load point, by block, without the sentinel's."""
        found: dict[Key, list[Cell]] = {}
        for cell in sorted(self.cells, key=lambda cell: block_order(cell.document.key.block)):
            key = cell.document.key
            if not is_sentinel(key.block):
                found.setdefault((key.config, key.load), []).append(cell)
        return {key: tuple(cells) for key, cells in found.items()}

    @cached_property
    def _planned_by_point(self) -> Mapping[Key, tuple[PlannedCell, ...]]:
        found: dict[Key, list[PlannedCell]] = {}
        for cell in self.planned:
            if not cell.sentinel:
                found.setdefault((cell.key.config, cell.key.load), []).append(cell)
        return {key: tuple(cells) for key, cells in found.items()}

    def planned_at(self, config: str, load: str) -> tuple[PlannedCell, ...]:
        """Planned cells of a config and load point, without the sentinel's."""
        return self._planned_by_point.get((config, load), ())

    @property
    def external(self) -> bool:
        """Some server was not started by the sweep: its blocks are repetitions on it, not server starts."""
        return any(config.kind == "external" for config in self.spec.configs)

    @property
    def synthetic(self) -> bool:
        """Nothing of it was measured on a real server."""
        return self.spec.evidence == "synthetic"

    @property
    def simulated(self) -> str | None:
        """What numbers of virtual time rest on; None where servers were run, simulated ones among them."""
        return next((told for cell in self.cells if (told := cell.document.provenance.simulated)), None)

    def standing(self, config: str) -> str:
        """The verdict's word for a config: that of the leader, and worse, tied, undecided or infeasible for others."""
        decision = self.decision
        if config == decision.leader:
            return decision.verdict
        for each in decision.comparisons:
            if each.config == config:
                return each.standing
        return "infeasible" if decision.scores[config].points else "not_measured"

    def chosen(self, config: str) -> tuple[str, ...]:
        """Load points that supply the config's score."""
        return tuple(point.load for point in self.decision.scores[config].chosen.values())


def load_order(load: Load) -> tuple[int, int, float]:
    """Sort key: by shape, then ascending."""
    return load.prompt_tokens or 0, load.output_tokens or 0, load.amount


def shape(load: Load) -> str:
    """Loads that differ in arrivals only share a shape."""
    return load.dataset if load.prompt_tokens is None else f"{load.dataset} {load.lengths} tokens"
