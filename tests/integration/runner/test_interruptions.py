"""The runner is stopped, killed, or outlives its server: nothing is measured twice, nothing is called valid."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import OpenCell, TrialPlan

if TYPE_CHECKING:
    from tests.integration.runner.conftest import Engine, Results, Runner

Run = Callable[..., "Runner"]
Planned = Callable[..., TrialPlan]


@pytest.fixture
def loads() -> list[Load]:
    """A short one, a long one to be interrupted, a short one."""
    return [_closed(1, 0.5), _closed(2, 60), _closed(3, 0.5)]


def _closed(concurrency: int, seconds: float) -> Load:
    return Load(prompt_tokens=32, output_tokens=20, arrival="closed", concurrency=concurrency, window_seconds=seconds)


def test_sigterm_in_the_window_voids_the_cell_and_commits(
    engine: Engine, run: Run, planned: Planned, results: Results, loads: list[Load]
) -> None:
    plan = planned(engine.url, results.uri, loads)
    runner = run(plan)
    runner.wait_step("measuring", load_id=loads[1].id)
    runner.signal(signal.SIGTERM)
    outcome = runner.end()
    assert outcome.valid == 1
    assert outcome.open == (
        OpenCell(load=loads[1].id, outcome="void", reason="RunnerStopped"),
        OpenCell(load=loads[2].id, outcome="not_run", reason="RunnerStopped"),
    )
    cell = results.cell(plan, 1)
    assert (cell.outcome, cell.reason) == ("void", "RunnerStopped")
    assert cell.counts is not None
    assert cell.counts.attempted > 0
    assert results.commit(plan, 1) is not None
    assert results.result(plan, 1) is None
    assert results.commit(plan, 2) is None


def test_killed_in_the_window_and_restarted_with_its_spool(
    engine: Engine, run: Run, planned: Planned, results: Results, loads: list[Load]
) -> None:
    plan = planned(engine.url, results.uri, loads, warmup_max_seconds=0.5)
    runner = run(plan)
    runner.wait_step("measuring", load_id=loads[1].id)
    runner.signal(signal.SIGKILL)
    runner.process.wait()
    first = (results.folder(plan, 0) / "_RESULT.json").stat()
    outcome = run(plan).end()
    assert outcome.valid == 2
    assert outcome.open == (OpenCell(load=loads[1].id, outcome="void", reason="RunnerFailed"),)
    assert results.cell(plan, 1).reason == "RunnerFailed"
    assert results.cell(plan, 2).outcome == "valid"
    assert (results.folder(plan, 0) / "_RESULT.json").stat() == first
    assert results.cell(plan, 0).start == results.cell(plan, 2).start
    memory = json.loads(next((runner.folder / "spool").rglob("memory.json")).read_text())
    assert memory["warmups"] == 1


def test_a_finished_cell_is_committed_by_the_restarted_runner(
    engine: Engine, run: Run, planned: Planned, tmp_path: Path
) -> None:
    """The store is not there while the first runner lives: its folder is a file."""
    (tmp_path / "store").write_text("not a folder")
    uri = (tmp_path / "store" / "results").as_uri()
    loads = [_closed(1, 0.5), _closed(2, 60)]
    plan = planned(engine.url, uri, loads)
    runner = run(plan)
    runner.wait_step("measuring", load_id=loads[1].id)
    assert (runner.status() or pytest.fail("gone")).upload_error is not None
    runner.signal(signal.SIGKILL)
    runner.process.wait()
    staged = next((runner.folder / "spool").rglob("commit/cell.json")).read_bytes()
    (tmp_path / "store").unlink()
    outcome = run(plan).end()
    assert (outcome.valid, outcome.lost) == (1, 0)
    stored = list((tmp_path / "store").rglob(f"load={loads[0].id}/**/cell.json"))
    assert [path.read_bytes() for path in stored] == [staged]


def test_without_its_spool_a_runner_measures_nothing_on_a_used_server(
    engine: Engine, run: Run, planned: Planned, results: Results, loads: list[Load]
) -> None:
    plan = planned(engine.url, results.uri, loads)
    runner = run(plan, folder="first")
    runner.wait_step("measuring", load_id=loads[1].id)
    runner.signal(signal.SIGKILL)
    runner.process.wait()
    outcome = run(plan, folder="second").end()
    assert outcome.valid == 1
    assert outcome.open == tuple(OpenCell(load=load.id, outcome="void", reason="RunnerLost") for load in loads[1:])
    assert results.commit(plan, 1) is None


def test_a_server_that_dies_in_the_window_voids_the_cell_at_once(
    engine: Engine, run: Run, planned: Planned, results: Results, loads: list[Load]
) -> None:
    plan = planned(engine.url, results.uri, loads[1:])
    runner = run(plan)
    runner.wait_step("measuring")
    engine.process.kill()
    outcome = runner.end()
    assert outcome.open == (
        OpenCell(load=loads[1].id, outcome="void", reason="ServerGone"),
        OpenCell(load=loads[2].id, outcome="not_run", reason="ServerGone"),
    )
    cell = results.cell(plan, 0)
    assert cell.server is not None
    assert cell.server.generation_tokens is None


def test_a_server_that_restarts_in_the_window_ends_the_trial(
    engines: Callable[..., Engine], run: Run, planned: Planned, results: Results
) -> None:
    loads = [_closed(1, 6), _closed(2, 0.5)]
    engine = engines()
    plan = planned(engine.url, results.uri, loads)
    runner = run(plan)
    runner.wait_step("measuring")
    runner.signal(signal.SIGSTOP)  # it must not look while nothing listens: then the server is simply gone
    engine.process.kill()
    engine.process.wait()
    engines(port=int(engine.url.rsplit(":", 1)[1]))
    runner.signal(signal.SIGCONT)
    outcome = runner.end()
    assert [(cell.outcome, cell.reason) for cell in outcome.open] == [
        ("void", "ServerRestarted"),
        ("not_run", "ServerRestarted"),
    ]
    assert results.cell(plan, 0).reason == "ServerRestarted"


def test_the_trials_deadline_voids_what_runs(
    engine: Engine, run: Run, planned: Planned, results: Results, loads: list[Load]
) -> None:
    plan = planned(engine.url, results.uri, loads[1:2], deadline_seconds=5)
    outcome = run(plan).end()
    (cell,) = outcome.open
    assert cell.reason == "TrialDeadline"
