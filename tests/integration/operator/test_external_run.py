"""`goodput run` of a sweep on servers that run already, over TLS and with a key: both exit codes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Authority, Fronts

SENTINEL = "sk-sentinel-4711"
SWEEP = """
apiVersion: goodput.dev/v1alpha1
kind: BenchmarkSweep
metadata: {name: gateway}
spec:
  model: {name: toy/model}
  engines:
    - {name: one, kind: external, external: &server {url: URL, apiKeySecretRef: {name: g}, caSecretRef: {name: g-ca}}}
    - {name: two, kind: external, external: *server}
  workload:
    promptTokens: [16]
    outputTokens: [4]
    concurrency: [2]
    window: {duration: 1s}
    warmup: {max: 300ms}
  slo: {ttft: 5s}
  plan: {blocks: {min: 1}, parallelism: 4, retries: 5}
  results: {uri: "file://./results"}
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[int]:
    """Port of a simulated server that asks for the key."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "goodput.engines.simulated", "toy/model", "--profile", "instant"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--api-key", SENTINEL]
    (tmp_path / "engine").mkdir()
    with (tmp_path / "engine" / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline, tick = time.monotonic() + 60, threading.Event()
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).is_success:
                    break
            except httpx.TransportError:
                tick.wait(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


def goodput(folder: Path, url: str, authority: Authority, key: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    (folder / "sweep.yaml").write_text(SWEEP.replace("URL", url))
    command = [sys.executable, "-c", "from goodput.operator.cli import main; main()", "run", "sweep.yaml", "--plain"]
    environment = {**os.environ, "GOODPUT_G_TOKEN": key, "GOODPUT_G_CA_TOKEN": str(authority.ca)}
    return subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=250
    )


def secrets(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and SENTINEL.encode() in path.read_bytes()]


def test_a_sweep_on_a_server_that_runs_already(
    engine: int, fronts: Fronts, authority: Authority, tmp_path: Path
) -> None:
    url = fronts(engine).url
    done = goodput(tmp_path / "run", url, authority, SENTINEL)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    assert "SYNTHETIC" not in output
    assert "blocks are repetitions" in output
    assert output.splitlines()[-1].startswith("Succeeded: ")
    assert SENTINEL not in output
    assert secrets(tmp_path / "run") == []

    results = next((tmp_path / "run" / "results").iterdir())
    rows = pq.read_table(results / "tables" / "configs.parquet").to_pylist()
    assert {(row["engine"], row["kind"], row["url"], row["command"]) for row in rows} == {
        ("one", "external", url, None),
        ("two", "external", url, None),
    }
    assert {row["evidence"] for row in pq.read_table(results / "tables" / "goodput.parquet").to_pylist()} == {
        "measured"
    }
    assert "not server starts" in (results / "report.html").read_text()


def test_a_key_that_is_refused_ends_it_before_any_window(
    engine: int, fronts: Fronts, authority: Authority, tmp_path: Path
) -> None:
    done = goodput(tmp_path / "run", fronts(engine).url, authority, f"{SENTINEL}-wrong")
    output = done.stdout + done.stderr
    assert done.returncode == 1, output
    assert "KeyRefused: POST /v1/completions: 401" in output.splitlines()[-1]
    assert "correct the key of external.apiKeySecretRef" in output.splitlines()[-1]
    assert output.count(", on the server at https://") == 2, "one attempt for each engine: it is not tried again"
    assert SENTINEL not in output
    assert secrets(tmp_path / "run") == []
    assert not list((tmp_path / "run").rglob("_COMMIT.json"))


def test_a_key_that_is_not_there_is_named(authority: Authority, tmp_path: Path) -> None:
    done = goodput(tmp_path / "run", "https://127.0.0.1:9", authority, "")
    assert done.returncode == 1
    assert "GOODPUT_G_TOKEN (external.apiKeySecretRef) holds no API key" in (done.stdout + done.stderr)
