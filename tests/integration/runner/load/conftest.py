"""Cells of the real load client against the golden server, a process of its own whose truth is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from bench.golden.process import Golden
from bench.golden.process import golden as start_golden
from bench.golden.script import Script

from goodput.analysis.schema.base import Endpoint
from goodput.analysis.schema.planned import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.processes import Times
from goodput.runner.load.prompts import Ids, Messages, user_message
from goodput.runner.load.run import CellRecords, LoadRun, Target

StartGolden = Callable[[Script], Golden]
RunCell = Callable[..., CellRecords]


class Numbered:
    """Prompts that begin with their number, so that the server knows which request it has."""

    def ids(self, n: int, index: int) -> Ids:
        return np.array([index, *range(n - 1)], dtype=np.int64)

    def messages(self, n: int, index: int) -> Messages:
        return user_message(f"req-{index} é " + "word " * (n - 2))


@pytest.fixture
def golden() -> Iterator[StartGolden]:
    """Starts golden servers; they end with the test."""
    with ExitStack() as stack:

        def start(script: Script) -> Golden:
            return stack.enter_context(start_golden(script))

        yield start


@pytest.fixture
def run_cell(tmp_path: Path) -> RunCell:
    """Runs a cell against a port to its end and collects it."""
    cells = 0

    def run(
        port: int,
        load: Load,
        *,
        lead_in: float = 0.0,
        drain: float = 20.0,
        processes: int = 1,
        endpoint: Endpoint = "completions",
        replayed: Times | None = None,
        url: str | None = None,
        ca: Path | None = None,
    ) -> CellRecords:
        nonlocal cells
        cells += 1
        plan = PlannedLoad(load=load, seed=11, lead_in_seconds=lead_in, drain_seconds=drain)
        where = url or f"http://127.0.0.1:{port}"
        ca_file = None if ca is None else str(ca)
        target = Target.of(where, "golden", endpoint, {"Authorization": "Bearer k"}, ca_file=ca_file)
        folder = tmp_path / f"cell{cells}"
        cell = LoadRun(plan, target, Numbered(), folder, processes=processes, replayed=replayed)
        cell.start()
        try:
            assert cell.wait(60)
            return cell.collect()
        finally:
            cell.close()

    return run
