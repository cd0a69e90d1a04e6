from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from goodput.analysis.schema.planned import Load
from goodput.runner.cell import Bench, measure
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.errors import PromptError
from goodput.runner.snapshot import Snapshot
from goodput.runner.spool import CellSpool
from goodput.runner.stop import Stop


class Idle:
    """A bench up to the point where its prompts cannot be made."""

    def __init__(self) -> None:
        self.plan = SimpleNamespace(server=SimpleNamespace(external=True))
        self.board = SimpleNamespace(update=lambda **_: None)
        self.stop = Stop()
        self.server_start_time = None
        self.idle_seconds = 1.0
        self.workloads = SimpleNamespace(of=self._of)

    def snapshot(self) -> Snapshot:
        return Snapshot(stamp=0.0)

    def _of(self, _: PlannedLoad) -> Any:
        raise PromptError("the id pool is too small")


def test_prompts_that_cannot_be_made_are_named_and_not_tried_again(tmp_path: Path) -> None:
    load = Load(prompt_tokens=16, output_tokens=1, arrival="closed", concurrency=1, window_requests=1)
    planned = PlannedLoad(load=load, seed=1, lead_in_seconds=0, drain_seconds=1)
    cell = CellSpool(tmp_path / "cell")
    assert measure(cast("Bench", Idle()), planned, cell) == (None, None)
    assert cell.closing is not None
    assert (cell.closing.reason, cell.closing.message) == ("NoPrompts", "the id pool is too small")
