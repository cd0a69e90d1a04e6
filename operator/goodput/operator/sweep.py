"""A resolved sweep: the spec with defaults, the grid expanded, ids fixed, the order of every block drawn.

Pure data and pure functions: both drivers plan from it, and the same spec and seed give the same sweep.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from goodput.analysis import ids
from goodput.analysis.schema.base import PRIME, Evidence
from goodput.analysis.schema.planned import Config, Load
from goodput.analysis.schema.sweep import SpecDocument
from goodput.operator.spec.external import address

if TYPE_CHECKING:
    from goodput.operator.spec.models import EngineSpec, SweepSpec

IDLE_DEADLINE_SECONDS = 60.0
"""How long the runner waits for an idle server, before and after each cell (DESIGN §6)."""

TRIAL_MARGIN_SECONDS = 300.0
"""Verifying, the client's own ceiling, and commits."""

MUTABLE: dict[str, Any] = {
    "suspend": True,
    "cancel": True,
    "budget": True,
    "retention": True,
    "plan": {"parallelism": True, "blocks": {"max": True}},
    "results": {"credentials_secret_ref": True},
}
"""What may change while a sweep exists (DESIGN §5): no part of ``spec.json``, which is written once."""


@dataclass(frozen=True, order=True)
class TrialId:
    """One server lifetime: a config in a block, k-th attempt (from 1)."""

    block: str
    config: str
    attempt: int

    @property
    def name(self) -> str:
        """Short, unique within the sweep, a valid part of an object's name: ``1a2b3c4d5e-0-1``."""
        return f"{self.config}-{self.block}-{self.attempt}"

    @property
    def primes(self) -> bool:
        """It only fills the compile cache: its server goes as soon as it is ready, and nothing is measured."""
        return self.block == PRIME

    @property
    def folder(self) -> str:
        """Folder in the store, below the sweep's."""
        return f"trials/config={self.config}/block={self.block}/attempt={self.attempt}"


@dataclass(frozen=True)
class LoadStep:
    """One load point with what is fixed for it in the plan, the same for all configs. Seconds.

    ``window_seconds`` is what is expected where the window goes by requests.
    """

    load: Load
    lead_in_seconds: float
    drain_seconds: float
    window_seconds: float

    @property
    def planned(self) -> bool:
        """How long the window is, is known before: not where it goes by requests that the server's answers make."""
        return self.load.window_seconds is not None or self.load.request_rate is not None

    @property
    def seconds(self) -> float:
        """Expected wall time of the cell: lead-in, window and a short drain."""
        return self.lead_in_seconds + self.window_seconds + min(self.drain_seconds, 3.0)


@dataclass(frozen=True)
class Sweep:
    """Everything the planner needs to know about one BenchmarkSweep."""

    namespace: str
    name: str
    uid: str
    folder: str  # results folder: <namespace>.<name>.<uid8>, locally local.<name>.<hash8>
    generation: int
    spec: SweepSpec
    evidence: Evidence
    configs: tuple[Config, ...]  # in the order of the grid
    loads: tuple[LoadStep, ...]  # ascending
    reference: str  # config id
    sentinel: bool  # resolved once, at acceptance
    output_check: bool  # the same
    estimate_seconds: float
    estimate_gpu_hours: float
    primes: tuple[str, ...] = ()  # config ids whose servers fill the compile cache before the first block
    warnings: tuple[str, ...] = ()  # what does not stop it, and should be known

    @property
    def results_uri(self) -> str:
        """Folder of all that the sweep writes."""
        return f"{self.spec.results.uri.rstrip('/')}/sweep={self.folder}"

    @property
    def trial_deadline_seconds(self) -> float:
        """How long a runner may take for a whole trial: every step at its own deadline, and room for commits."""
        cells = sum(
            step.lead_in_seconds + 2 * step.window_seconds + step.drain_seconds + 2 * IDLE_DEADLINE_SECONDS
            for step in self.loads
        )
        return TRIAL_MARGIN_SECONDS + self.spec.workload.warmup.max_seconds + cells

    @property
    def blocks(self) -> tuple[str, ...]:
        """Block ids of the exhaustive plan."""
        return tuple(str(number) for number in range(self.spec.plan.blocks.min))

    @property
    def sentinels(self) -> tuple[str, ...]:
        """Block ids of the sentinels: one before the first block and one after each."""
        return tuple(f"s{number:02d}" for number in range(len(self.blocks) + 1)) if self.sentinel else ()

    @cached_property
    def by_id(self) -> dict[str, Config]:
        """Configs by id."""
        return {config.id: config for config in self.configs}

    @cached_property
    def load_ids(self) -> tuple[str, ...]:
        """Ids of the loads, in their order."""
        return tuple(step.load.id for step in self.loads)

    @cached_property
    def engines(self) -> dict[str, EngineSpec]:
        """Engines by name."""
        return {engine.name: engine for engine in self.spec.engines}

    def address(self, config: str) -> str | None:
        """The external server of a config, None where one is started. Trials at one address never overlap."""
        return address(self.engines[self.by_id[config].engine])

    def order(self, block: str) -> tuple[str, ...]:
        """Config ids of a block in their random order, drawn from the workload's seed."""
        if block in self.sentinels:
            return (self.reference,)
        shuffled = list(self.by_id)
        random.Random(ids.seed(self.spec.workload.seed, block, "order")).shuffle(shuffled)
        return tuple(shuffled)

    def sequence(self) -> tuple[tuple[str, str], ...]:
        """All (block, config id) pairs in the order in which their servers are started."""
        return self._sequence

    @cached_property
    def _sequence(self) -> tuple[tuple[str, str], ...]:
        return tuple(self._pairs())

    def _pairs(self) -> Iterator[tuple[str, str]]:
        yield from ((PRIME, config) for config in self.primes)
        for number, block in enumerate(self.blocks):
            if self.sentinel:
                yield self.sentinels[number], self.reference
            yield from ((block, config) for config in self.order(block))
        if self.sentinel:
            yield self.sentinels[-1], self.reference

    @property
    def planned_cells(self) -> int:
        """Cells that get a result or a state: configs × loads × blocks, sentinels on top."""
        return (len(self.configs) * len(self.blocks) + len(self.sentinels)) * len(self.loads)

    def document(self) -> SpecDocument:
        """``spec.json``."""
        return SpecDocument(
            namespace=self.namespace,
            name=self.name,
            uid=self.uid,
            folder=self.folder,
            evidence=self.evidence,
            spec=self.spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=MUTABLE),
            model=self.spec.model.name,
            configs=self.configs,
            loads=tuple(step.load for step in self.loads),
            blocks=self.blocks,
            sentinels=self.sentinels,
            reference=self.reference,
            slo=self.spec.slo.to_document(),
            objective=self.spec.objective.name,
            tie_break=self.spec.objective.tie_break,
            indifference=self.spec.plan.indifference,
        )
