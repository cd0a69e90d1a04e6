"""The cluster and one machine's processes, the same spec and seed: the same ids, requests, prompts and cells."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from tests.cluster.e2e.conftest import Bench

Cell = tuple[str, str, str]
Requests = dict[Cell, tuple[str, str]]


def test_both_doors_send_the_same_requests(bench: Bench, tmp_path: Path) -> None:
    body = bench.sweep(budgets=[1024, 4096], rates=[4, 6], blocks=1)
    bench.apply(body)
    bench.succeeded()
    clustered = _requests({key: bench.read(key) for key in bench.stored()})

    spec = tmp_path / "sweep.yaml"
    spec.write_text(yaml.safe_dump(body))
    results = tmp_path / "results"
    command = [str(Path(sys.executable).with_name("goodput")), "run", str(spec), "--plain"]
    command += ["--results", results.as_uri(), "--state-dir", str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    local = _requests({str(path): path.read_bytes() for path in results.rglob("*") if path.is_file()})

    assert len(clustered) == 4
    assert local == clustered


def _requests(files: dict[str, bytes]) -> Requests:
    """Hashes of schedule and prompts of each cell that has a result."""
    found: Requests = {}
    for name, data in files.items():
        if name.endswith("/cell.json"):
            cell = json.loads(data)
            if cell["outcome"] == "valid":
                key = (cell["key"]["config"], cell["key"]["load"], cell["key"]["block"])
                found[key] = (cell["window"]["schedule_sha256"], cell["window"]["prompts_sha256"])
    return found
