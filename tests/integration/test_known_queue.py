"""A queue whose truth is known: one server, FIFO, exactly 10 requests/s; offered 8, 12 and 20 requests/s for 60 s.

Theory. Below capacity (8/s) the queue is M/D/1 with utilisation 0.8: it delivers what is offered, and a wait of
more than 0.9 s has probability near exp(-5 * 0.9) = 0.01. Above capacity it delivers 10/s, however much is
offered; a request that arrives t seconds after the start waits about t * (offered / 10 - 1) seconds, which at the
window's opening (t = 10 s) already breaks an SLO of 1 s, so attainment is 0 in the window.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from goodput.analysis import ids
from goodput.analysis.metrics import judge, request_metrics
from goodput.analysis.schema.planned import Config, Load, Slo
from goodput.runner.contract import Outcome, PlannedLoad, ResultsTarget, ServerFacts, TrialPlan

SLO = Slo(e2e=1.0)
CAPACITY = 10.0
pytestmark = [pytest.mark.timeout(420), pytest.mark.alone]


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[float, dict[str, Any]]:
    """The three cells, measured beside each other: each load is a few requests per second."""
    folder = tmp_path_factory.mktemp("queue")
    with ThreadPoolExecutor() as pool:
        rates = (8.0, 12.0, 20.0)
        return dict(zip(rates, pool.map(lambda rate: _measure(folder / str(rate), rate), rates), strict=True))


@pytest.mark.parametrize(
    ("offered", "state", "attainment"), [(8.0, "stable", 1.0), (12.0, "saturated", 0.0), (20.0, "saturated", 0.0)]
)
def test_a_known_queue_is_measured_as_theory_says(
    cells: dict[float, dict[str, Any]], offered: float, state: str, attainment: float
) -> None:
    cell = cells[offered]
    assert cell["outcome"] == "valid", cell["reason"]
    window = cell["window"]["closed"] - cell["window"]["opened"]
    assert window == pytest.approx(60, abs=0.01)
    # delivered: what is offered below capacity (4 standard deviations of a Poisson count), 10/s above it
    spread = 4 * (offered * window) ** 0.5 if offered < CAPACITY else 2.0
    assert cell["delivered_requests"] == pytest.approx(min(offered, CAPACITY) * window, abs=spread)
    assert cell["load_state"] == state
    assert cell["attainment"] == pytest.approx(attainment, abs=0.05)
    assert cell["counts"]["attempted"] == pytest.approx(offered * window, abs=4 * (offered * window) ** 0.5)


def _measure(folder: Path, rate: float) -> dict[str, Any]:
    folder.mkdir()
    with _server() as url:
        load = Load(prompt_tokens=16, output_tokens=4, arrival="poisson", request_rate=rate, window_seconds=60)
        plan = TrialPlan(
            sweep="local.queue.00000000",
            evidence="synthetic",
            config=Config(engine="queue", kind="simulated", flags={"profile": "fixed-rate"}),
            block="0",
            attempt=1,
            model="toy/model",
            served_model="toy/model",
            server=ServerFacts(url=url, order=1),
            warmup_max_seconds=0,
            warmup_concurrency=1,
            warmup_seed=1,
            loads=(PlannedLoad(load=load, seed=ids.seed(7, "0", load.id), lead_in_seconds=10, drain_seconds=5),),
            slo=SLO,
            results=ResultsTarget(uri=(folder / "results").as_uri()),
            deadline_seconds=400,
        )
        trial = folder / "trial.json"
        trial.write_bytes(plan.to_json())
        command = [sys.executable, "-m", "goodput.runner", "trial", "--plan", str(trial), "--port", str(_free_port())]
        command += ["--spool", str(folder / "spool"), "--message", str(folder / "message")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
        assert done.returncode == 0, done.stderr
        outcome = Outcome.model_validate_json((folder / "message").read_text())
        assert outcome.done, outcome
    return _cell(folder / "results")


def _cell(results: Path) -> dict[str, Any]:
    document = next(results.rglob("cell.json"))
    cell: dict[str, Any] = json.loads(document.read_text())
    requests = pq.read_table(document.with_name("requests.parquet"))
    judgement = judge(request_metrics(requests), SLO, open_loop=True)
    cell["attainment"] = judgement.good / judgement.attempted
    return cell


@contextmanager
def _server() -> Iterator[str]:
    port = _free_port()
    command = [sys.executable, "-m", "goodput.engines.simulated", "toy/model", "--profile", "fixed-rate"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", "1024"]
    with subprocess.Popen(command) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + 60
            while not _healthy(url):
                assert server.poll() is None, "the server ended"
                assert time.monotonic() < deadline, "the server did not start"
                time.sleep(0.1)
            yield url
        finally:
            server.terminate()


def _healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
