"""A real engine whose truth is known, and cells against it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from goodput.analysis.schema.planned import Load
from goodput.engines.simulated import arguments
from goodput.engines.simulated.profile import load_profile
from goodput.engines.simulated.virtual import VirtualEngine
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.cell import CellRecords
from goodput.runner.load.lengths import PlannedLengths
from goodput.runner.load.prompts import RandomIds
from goodput.runner.virtual.cell import VirtualCell
from goodput.runner.workload import Workload

Run = Callable[..., CellRecords]


def started(profile: str = "fixed-rate", *flags: str) -> VirtualEngine:
    loaded = load_profile(profile)
    return VirtualEngine(arguments.resolve(arguments.parse(["m", *flags]), loaded), loaded, 7)


@pytest.fixture
def run() -> Run:
    """Run a load against the server of exactly ten requests per second, or another profile."""

    def cell(
        profile: str = "fixed-rate", lead_in: float = 0.0, drain: float = 60.0, seed: int = 3, **load: object
    ) -> CellRecords:
        shape = {"prompt_tokens": 32, "output_tokens": 4, **load}
        planned = PlannedLoad(load=Load.model_validate(shape), seed=seed, lead_in_seconds=lead_in, drain_seconds=drain)
        work = Workload(RandomIds(range(1000, 9000), seed), PlannedLengths(planned.load, seed))
        return VirtualCell(started(profile), planned, work, "completions").run()

    return cell
