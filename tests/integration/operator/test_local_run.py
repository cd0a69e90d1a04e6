"""`goodput run` with all real parts: simulated server, runner, store, analysis."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import zstandard

SWEEP = """
apiVersion: goodput.dev/v1alpha1
kind: BenchmarkSweep
metadata: {name: tiny}
spec:
  model: {name: toy}
  engines: [{name: sim, kind: simulated, profile: instant, args: {max_num_seqs: 16, max_model_len: 1024}}]
  configs: {list: [{max_num_batched_tokens: 1024}, {max_num_batched_tokens: 1024, num_gpu_blocks_override: 8}]}
  workload:
    promptTokens: [16]
    outputTokens: [4]
    requestRate: [4]
    leadIn: 200ms
    window: {duration: 1s}
    warmup: {max: 500ms}
  slo: {ttft: 5s}
  plan: {blocks: {min: 1}, retries: 10}
  results: {uri: "file://./results"}
"""


def goodput(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from goodput.operator.cli import main; main()", *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_sweep_on_one_machine_from_the_file_to_the_table(tmp_path: Path) -> None:
    """Ctrl-C in the measurement, going on, a config that the server refuses, the table again from the records."""
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    first = goodput(tmp_path, "run", "sweep.yaml", "--plain")
    assert first.stdout is not None
    lines = []
    for line in first.stdout:
        lines.append(line)
        if "measuring" in line:
            break
    assert "16→4 @ 4/s" in lines[-1]
    first.send_signal(signal.SIGINT)
    output, _ = first.communicate(timeout=200)
    assert first.returncode == 130, output
    lines.append(output)

    second = goodput(tmp_path, "run", "sweep.yaml", "--plain")
    output, _ = second.communicate(timeout=250)
    assert second.returncode == 0, output
    assert "SYNTHETIC" in output.splitlines()[0]
    assert "SYNTHETIC: from a simulated engine, not measured on a real server" in output
    assert output.splitlines()[-1].startswith("SYNTHETIC PartiallyFailed: ")
    assert "failed: KvCacheTooSmall: " in "".join([*lines, output]), "in whichever run it was its turn"
    assert "[undecided]" in output

    folder = next((tmp_path / "results").iterdir())
    committed = sorted(path.parent.name for path in folder.rglob("_COMMIT.json"))
    results = list(folder.rglob("_RESULT.json"))
    assert len(results) == 1
    assert json.loads(results[0].read_text())["attempt"] == int(committed[-1].removeprefix("attempt="))
    interrupted = next(folder.rglob("attempt=1/_COMMIT.json"))
    assert json.loads(interrupted.read_text())["reason"] == "RunnerStopped"
    logs = [zstandard.decompress(path.read_bytes()).decode() for path in folder.glob("trials/*/*/*/server.log.zst")]
    served = [log for log in logs if "Starting vLLM server (simulated)" in log]
    assert len(served) < len(logs), "logs are in the store, also of the server that failed"
    assert served
    assert all("[shutdown] complete" in log for log in served), "with what it wrote while it stopped"
    for name in ("goodput", "configs", "cells"):
        assert (folder / "tables" / f"{name}.parquet").exists()
    cells = (folder / "tables" / "cells.csv").read_text()
    assert "KvCacheTooSmall" in cells
    report = re.search(r"^report: (.*)$", output, re.MULTILINE)
    assert report is not None
    assert Path(report[1]).read_text().count("SYNTHETIC") >= 1

    again = goodput(tmp_path, "analyze", f"file://{folder}")
    text, _ = again.communicate(timeout=120)
    assert again.returncode == 0, text
    assert "[undecided]" in text


def test_the_plan_names_every_cell_and_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    process = goodput(tmp_path, "plan", "sweep.yaml")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output.count("not_run") == 2
    assert "goodput-engine-simulated toy" in output
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.yaml"]
