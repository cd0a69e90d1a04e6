"""Real parts for the runner: a simulated server process, the runner as a process, a file store."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from goodput.analysis import ids
from goodput.analysis.schema.cell import CellDocument
from goodput.analysis.schema.commit import Commit
from goodput.analysis.schema.planned import Config, Load, Slo
from goodput.runner.contract import Outcome, PlannedLoad, ResultsTarget, RunnerStatus, ServerFacts, TrialPlan

WAIT_SECONDS = 120.0


def wait_for(what: Callable[[], Any], seconds: float = WAIT_SECONDS) -> Any:
    """The first true value; polling, because the other side is another process."""
    deadline = time.monotonic() + seconds
    tick = threading.Event()
    while time.monotonic() < deadline:
        value = what()
        if value:
            return value
        tick.wait(0.05)
    raise AssertionError("it did not happen in time")


@dataclass
class Engine:
    """A simulated server."""

    process: subprocess.Popen[bytes]
    url: str

    def metrics(self) -> str:
        return httpx.get(f"{self.url}/metrics", trust_env=False).text


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_engine(log: Path, *arguments: str, port: int | None = None) -> Engine:
    port = port or free_port()
    command = [sys.executable, "-m", "goodput.engines.simulated", "toy/model", "--profile", "instant"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", "2048", "--max-num-seqs", "64"]
    with log.open("ab") as output:
        process = subprocess.Popen([*command, *arguments], stdout=output, stderr=output)
    engine = Engine(process, f"http://127.0.0.1:{port}")

    def ready() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            return httpx.get(f"{engine.url}/health", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    wait_for(ready)
    return engine


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[Callable[..., Engine]]:
    """Start simulated servers; extra arguments are flags."""
    started: list[Engine] = []

    def start(*arguments: str, port: int | None = None) -> Engine:
        started.append(start_engine(tmp_path / "engine.log", *arguments, port=port))
        return started[-1]

    yield start
    for engine in started:
        engine.process.kill()
        engine.process.wait()


@pytest.fixture
def engine(engines: Callable[..., Engine]) -> Engine:
    """One simulated server, a step per millisecond."""
    return engines()


def closed(concurrency: int, *, seconds: float = 1.0, output_tokens: int = 20) -> Load:
    """A closed loop: nothing in it depends on how busy the machine is that runs the tests."""
    return Load(
        prompt_tokens=32,
        output_tokens=output_tokens,
        arrival="closed",
        concurrency=concurrency,
        window_seconds=seconds,
    )


def poisson(rate: float, *, seconds: float = 1.0) -> Load:
    """An open loop."""
    return Load(prompt_tokens=32, output_tokens=4, arrival="poisson", request_rate=rate, window_seconds=seconds)


@pytest.fixture
def loads() -> list[Load]:
    """Two short closed loops."""
    return [closed(1), closed(3)]


@pytest.fixture
def planned() -> Callable[..., TrialPlan]:
    """Make a trial plan: (url, results URI, loads, changed fields)."""
    return trial_plan


@pytest.fixture
def wait() -> Callable[..., Any]:
    """See `wait_for`."""
    return wait_for


def trial_plan(url: str, results: str, loads: list[Load], **changes: Any) -> TrialPlan:
    config = Config(engine="toy", kind="simulated", flags={"max_num_seqs": "64"}, swept={"max_num_seqs": "64"})
    planned = tuple(
        PlannedLoad(load=entry, seed=ids.seed(1, "0", entry.id), lead_in_seconds=0.3, drain_seconds=10)
        for entry in loads
    )
    fields: dict[str, Any] = {
        "sweep": "default.small.00000000",
        "evidence": "synthetic",
        "config": config,
        "block": "0",
        "attempt": 1,
        "model": "toy/model",
        "served_model": "toy/model",
        "server": ServerFacts(url=url, order=1, start_seconds=1.0, expects=dict(config.flags)),
        "warmup_max_seconds": 0,
        "warmup_concurrency": 4,
        "warmup_seed": 77,
        "loads": planned,
        "slo": Slo(ttft=0.5, tpot=0.1),
        "results": ResultsTarget(uri=results),
        "deadline_seconds": 300,
        "upload_hold_seconds": 60,
    }
    return TrialPlan(**(fields | changes))


class Runner:
    """``goodput-runner trial`` as a process, in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        plan: TrialPlan,
        environment: dict[str, str] | None = None,
        spool_limit: int | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.message = folder / "message.json"
        self.log = folder / "runner.log"
        self.port = free_port()
        self.plan = plan
        folder.mkdir(exist_ok=True)
        (folder / "trial.json").write_bytes(plan.to_json())
        command = [sys.executable, "-m", "goodput.runner", "trial", "--plan", str(folder / "trial.json")]
        command += ["--spool", str(folder / "spool"), "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--message", str(self.message), *options]
        command += ["--spool-limit", str(spool_limit)] if spool_limit else []
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, env={**os.environ, **(environment or {})}
            )

    def status(self) -> RunnerStatus | None:
        try:
            answer = httpx.get(f"http://127.0.0.1:{self.port}/status", trust_env=False)
        except httpx.TransportError:
            return None
        return RunnerStatus.model_validate_json(answer.content)

    def metrics(self) -> str:
        return httpx.get(f"http://127.0.0.1:{self.port}/metrics", trust_env=False).text

    def wait_step(self, *steps: str, load_id: str | None = None) -> RunnerStatus:
        def reached() -> RunnerStatus | None:
            assert self.process.poll() is None, self.log.read_text()
            status = self.status()
            return status if status and status.step in steps and load_id in (None, status.load) else None

        status: RunnerStatus = wait_for(reached)
        return status

    def end(self) -> Outcome:
        code = self.process.wait(WAIT_SECONDS)
        assert code == 0, self.log.read_text()
        return Outcome.model_validate_json(self.message.read_text())

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Runner]]:
    """Start a runner in a folder below the test's; whatever is left at the end is killed."""
    started: list[Runner] = []

    def start(plan: TrialPlan, folder: str = "runner", **options: Any) -> Runner:
        runner = Runner(tmp_path / folder, plan, **options)
        started.append(runner)
        return runner

    yield start
    for runner in started:
        runner.process.kill()
        runner.process.wait()


@dataclass
class Results:
    """What lies below ``cells/`` of a file store."""

    root: Path

    @property
    def uri(self) -> str:
        return self.root.as_uri()

    def folder(self, plan: TrialPlan, index: int) -> Path:
        entry = plan.loads[index].load.id
        return self.root / f"sweep={plan.sweep}" / f"cells/config={plan.config.id}/load={entry}/block={plan.block}"

    def result(self, plan: TrialPlan, index: int) -> dict[str, Any] | None:
        file = self.folder(plan, index) / "_RESULT.json"
        return json.loads(file.read_text()) if file.exists() else None

    def commit(self, plan: TrialPlan, index: int, attempt: int = 1) -> Commit | None:
        file = self.folder(plan, index) / f"attempt={attempt}" / "_COMMIT.json"
        return Commit.model_validate_json(file.read_bytes()) if file.exists() else None

    def cell(self, plan: TrialPlan, index: int, attempt: int = 1) -> CellDocument:
        file = self.folder(plan, index) / f"attempt={attempt}" / "cell.json"
        return CellDocument.model_validate_json(file.read_bytes())


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results")
