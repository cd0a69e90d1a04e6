"""The store refuses while cells are measured: nothing measured is lost when it comes back in time."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import OpenCell, ResultsTarget, TrialPlan
from goodput.runner.room import cell_bytes

if TYPE_CHECKING:
    from tests.integration.runner.conftest import Engine, Runner
    from tests.integration.runner.store.conftest import S3

Run = Callable[..., "Runner"]
Planned = Callable[..., TrialPlan]
Wait = Callable[..., Any]


def _plan(planned: Planned, engine: Engine, s3: S3, loads: list[Load], **changes: Any) -> TrialPlan:
    plan = planned(engine.url, "s3://bench/sweeps", loads, **changes)
    return plan.model_copy(update={"results": ResultsTarget(uri=plan.results.uri, endpoint=s3.endpoint)})


def _results(s3: S3) -> list[str]:
    return sorted(key for key in s3.objects if key.endswith("_RESULT.json"))


def test_a_store_that_comes_back_has_every_cell(
    engine: Engine, run: Run, planned: Planned, s3: S3, loads: list[Load]
) -> None:
    s3.mode = "denied"
    plan = _plan(planned, engine, s3, loads)
    runner = run(plan, environment=s3.environment)
    status = runner.wait_step("uploading")
    assert (status.measuring, status.done) == (False, 0)
    assert status.upload_error is not None
    assert status.upload_error.startswith("UploadDenied")
    assert not s3.objects
    assert "goodput_runner_upload_errors_total" in runner.metrics()
    s3.mode = "ok"
    outcome = runner.end()
    assert (outcome.valid, outcome.lost) == (2, 0)
    assert len(_results(s3)) == 2
    for key in _results(s3):
        commit = json.loads(s3.objects[key.replace("_RESULT.json", "attempt=1/_COMMIT.json")])
        for name, file in commit["files"].items():
            assert len(s3.objects[key.replace("_RESULT.json", f"attempt=1/{name}")]) == file["size"]
    for secret in ("very-secret-test-key", "AKIATESTONLY"):
        assert secret not in runner.log.read_text()
        assert secret not in status.model_dump_json()


def test_a_store_that_stays_away_loses_the_cells_and_says_so(
    engine: Engine, run: Run, planned: Planned, s3: S3, loads: list[Load]
) -> None:
    s3.mode = "unavailable"
    plan = _plan(planned, engine, s3, loads[:1], upload_hold_seconds=1)
    outcome = run(plan, environment=s3.environment).end()
    assert outcome.lost == 1
    assert outcome.open == (OpenCell(load=loads[0].id, outcome="void", reason="StoreUnreachable"),)


def test_stopped_while_the_store_refuses_it_still_uploads_when_it_can(
    engine: Engine, run: Run, planned: Planned, s3: S3, loads: list[Load]
) -> None:
    s3.mode = "denied"
    plan = _plan(planned, engine, s3, loads[:1], upload_hold_seconds=3600)
    runner = run(plan, environment=s3.environment)
    runner.wait_step("uploading")
    runner.signal(signal.SIGTERM)
    s3.mode = "ok"
    assert runner.end().done


def test_a_later_attempt_does_not_measure_without_knowing_what_there_is(
    engine: Engine, run: Run, planned: Planned, s3: S3, loads: list[Load]
) -> None:
    s3.mode = "denied"
    plan = _plan(planned, engine, s3, loads, attempt=2)
    runner = run(plan, environment=s3.environment)
    runner.wait_step("verifying")
    runner.signal(signal.SIGTERM)
    outcome = runner.end()
    assert outcome.valid == 0
    assert {(cell.outcome, cell.reason) for cell in outcome.open} == {("not_run", "RunnerStopped")}


def test_a_full_spool_waits_for_the_store(engine: Engine, run: Run, planned: Planned, s3: S3, wait: Wait) -> None:
    loads = [
        Load(prompt_tokens=32, output_tokens=20, arrival="closed", concurrency=concurrency, window_seconds=1)
        for concurrency in (2, 3)
    ]
    s3.mode = "denied"
    plan = _plan(planned, engine, s3, loads)
    beside = 16_000  # for plan and notes; the first cell's records are larger
    limit = cell_bytes(plan.loads[1]) + beside
    runner = run(plan, environment=s3.environment, spool_limit=limit)
    first, second = (load.id for load in loads)

    def waits() -> bool:
        status = runner.status()
        pending = list((runner.folder / "spool").rglob(f"{first}/commit/_COMMIT.json"))
        return bool(status and status.upload_error and pending)

    wait(waits)
    assert not list((runner.folder / "spool").rglob(f"{second}/began.json"))
    s3.mode = "ok"
    assert runner.end().done
