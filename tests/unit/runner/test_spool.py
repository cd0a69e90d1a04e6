from __future__ import annotations

from pathlib import Path

import pytest

from goodput.analysis.schema.commit import Commit
from goodput.runner.contract import TrialPlan
from goodput.runner.errors import PlanError
from goodput.runner.room import cell_bytes, enough_room
from goodput.runner.snapshot import Snapshot
from goodput.runner.spool import Closing, Committed, Memory, Opening, TrialSpool
from goodput.runner.warmup import Warmup


def test_memory_outlives_the_runner(tmp_path: Path, plan: TrialPlan) -> None:
    assert TrialSpool(tmp_path, plan).memory is None
    memory = Memory(began_unix=1.5, server_start_time=2.5, warmup=Warmup(3.0, 50, steady=True))
    TrialSpool(tmp_path, plan).remember(memory)
    assert TrialSpool(tmp_path, plan).memory == memory


def test_another_attempt_has_another_folder_and_another_plan_is_refused(tmp_path: Path, plan: TrialPlan) -> None:
    first = TrialSpool(tmp_path, plan)
    assert TrialSpool(tmp_path, plan.model_copy(update={"attempt": 3})).folder != first.folder
    with pytest.raises(PlanError):
        TrialSpool(tmp_path, plan.model_copy(update={"warmup_seed": 6}))


def test_a_cell_shows_how_far_it_came(tmp_path: Path, plan: TrialPlan, commit: Commit) -> None:
    cell = TrialSpool(tmp_path, plan).cell("abc")
    assert (cell.began, cell.opening, cell.closing, cell.commit, cell.committed) == (None,) * 5
    cell.begin(12.0)
    snapshot = Snapshot(stamp=1.0, running=0, waiting=0)
    cell.open(Opening(snapshot=snapshot))
    cell.load.mkdir()
    (cell.load / "spool-0.bin").write_bytes(b"x" * 1000)
    cell.close(Closing(snapshot=snapshot))
    cell.stage({"cell.json": b"{}"}, commit)
    assert not cell.load.exists()
    assert cell.staged("cell.json") == b"{}"
    cell.settle(Committed(outcome="valid"))

    again = TrialSpool(tmp_path, plan).cell("abc")
    assert again.began is not None
    assert again.opening is not None
    assert again.closing is not None
    assert again.commit is None
    assert again.committed == Committed(outcome="valid")


def test_the_limit_counts_what_waits(tmp_path: Path, plan: TrialPlan) -> None:
    spool, planned = TrialSpool(tmp_path, plan), plan.loads[0]
    needed = cell_bytes(planned)
    assert needed > 0
    assert enough_room(spool, planned, None)
    assert enough_room(spool, planned, needed + spool.used_bytes)
    (spool.folder / "waiting").write_bytes(b"x" * 1000)
    assert not enough_room(spool, planned, needed + spool.used_bytes - 1)
