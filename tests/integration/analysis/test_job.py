from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from goodput.analysis.cli import main
from goodput.analysis.retry import while_store_refuses
from goodput.analysis.schema.answer import AnalysisAnswer
from goodput.analysis.store import Store, StoreError

Builder = Any  # SweepBuilder of conftest.py
Toy = Callable[..., Any]
TRIAL = "trials/config=0123456789/block=0/attempt=1"


def job(sweep: Builder, tmp_path: Path, uri: str | None = None, **over: Any) -> tuple[int, str]:
    document = {
        "v": 1,
        "results": {"uri": uri or f"file://{tmp_path}/results", "endpoint": None, "region": None},
        "sweep": "default.toy.01234567",
        "states": sweep.states().model_dump(mode="json", exclude_none=True),
        "block": "2",
        "logs": ["a-0-1", "absent"],
    } | over
    (tmp_path / "input.json").write_text(json.dumps(document))
    message = tmp_path / "message"
    arguments = ["--input", str(tmp_path / "input.json"), "--logs", str(tmp_path / "logs"), "--message", str(message)]
    done = CliRunner().invoke(main, ["job", *arguments, "--hold", "1ms"])
    return done.exit_code, message.read_text()


def pack(tmp_path: Path, name: str, target: str) -> None:
    folder = tmp_path / "logs" / name
    folder.mkdir(parents=True)
    (folder / "target").write_text(target + "\n")
    (folder / "server.log.zst").write_bytes(b"log")
    (folder / "pod.json").write_bytes(b"{}")


def test_the_job_uploads_logs_analyses_and_answers(sweep: Builder, store: Store, toy: Toy, tmp_path: Path) -> None:
    sweep.fill(toy)
    pack(tmp_path, "a-0-1", TRIAL)
    code, message = job(sweep, tmp_path)
    assert code == 0
    answer = AnalysisAnswer.model_validate_json(message)
    assert len(message.encode()) <= 3500
    assert answer.uploaded_logs == ("a-0-1",)
    assert answer.block == "2"
    assert answer.generation == 1
    assert answer.best is not None
    assert answer.best.config == sweep.configs[1].id
    assert answer.top[0].config == sweep.configs[1].id
    assert store.get(f"{TRIAL}/server.log.zst") == b"log"
    assert store.get("states.json") is not None
    assert store.get("report.html") is not None


def test_a_log_pack_cannot_write_elsewhere(sweep: Builder, store: Store, toy: Toy, tmp_path: Path) -> None:
    sweep.fill(toy)
    pack(tmp_path, "a-0-1", "tables/../spec.json")
    code, message = job(sweep, tmp_path)
    assert code == 0
    assert AnalysisAnswer.model_validate_json(message).uploaded_logs == ()


def test_a_store_that_goes_on_refusing_ends_in_a_message(sweep: Builder, tmp_path: Path) -> None:
    refused = tmp_path / "no-folder"
    refused.write_text("a file where a folder should be")
    code, message = job(sweep, tmp_path, uri=f"file://{refused}")
    assert code == 1
    assert message.startswith("AnalysisFailed: ")


def test_records_that_cannot_be_trusted_end_in_a_message(sweep: Builder, store: Store, tmp_path: Path) -> None:
    sweep.write_spec()
    sweep.cell(sweep.configs[0], sweep.loads[0], "0", evidence="measured")
    code, message = job(sweep, tmp_path)
    assert code == 1
    assert "never mixed" in message


def test_a_broken_input_is_exit_1(sweep: Builder, tmp_path: Path) -> None:
    code, message = job(sweep, tmp_path, surprise=1)
    assert code == 1
    assert "surprise" in message


def test_by_hand(sweep: Builder, store: Store, toy: Toy, tmp_path: Path) -> None:
    sweep.fill(toy)
    folder = store.uri.removeprefix("file://")
    done, *others = (
        CliRunner().invoke(main, ["analyze", place, "--slo-ttft", "1s", "--slo-tpot", "100ms"])
        for place in (store.uri, folder, os.path.relpath(folder))
    )
    assert done.exit_code == 0, done.output
    assert all(other.exit_code == 0 and "tables/slo=" in other.output for other in others)
    assert "SYNTHETIC" in done.output
    assert "tables/slo=" in done.output
    missing = CliRunner().invoke(main, ["analyze", f"file://{tmp_path}/results"])
    assert missing.exit_code == 1
    assert "no spec.json" in missing.output
    nowhere = CliRunner().invoke(main, ["analyze", f"{tmp_path}/nowhere"])
    assert nowhere.exit_code == 1
    assert f"there is no folder {tmp_path}/nowhere" in nowhere.output
    assert not (tmp_path / "nowhere").exists()
    assert CliRunner().invoke(main, ["analyze", store.uri, "--slo-ttft", "500"]).exit_code == 2


class Refusing:
    """Refuses the first calls; its clock moves with its sleeps."""

    def __init__(self, refusals: int) -> None:
        self.refusals, self.now = refusals, 0.0
        self.pauses: list[float] = []

    def work(self) -> str:
        if self.refusals:
            self.refusals -= 1
            raise StoreError("writing x", RuntimeError("status code: 503"))
        return "done"

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def run(self, hold_seconds: float) -> str:
        return while_store_refuses(self.work, hold_seconds=hold_seconds, clock=lambda: self.now, sleep=self.sleep)


def test_a_refusing_store_is_retried_with_growing_pauses() -> None:
    store = Refusing(7)
    assert store.run(3600) == "done"
    assert store.pauses == [2, 4, 8, 16, 32, 60, 60]


def test_after_the_hold_the_refusal_is_raised() -> None:
    store = Refusing(10**6)
    with pytest.raises(StoreError):
        store.run(3600)
    assert store.now == 3600
