"""The same sweep on both clocks: over HTTP in real time, and in virtual time. What is asked is equal; what comes
back agrees within what a network, a client and a server's event loop add."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from goodput.analysis.schema.cell import CellDocument
from goodput.operator.virtual.command import simulate

Write = Callable[..., Path]
# Of a cell's medians. A request that comes a moment later waits for the next step, and one lasts 16.6 ms; the times
# between tokens are the engine's own.
TTFT_SECONDS = 0.017
TPOT_SECONDS = 0.001

OPEN = {"requestRate": [3, 9]}
CLOSED = {"concurrency": [1, 4]}


@dataclass(frozen=True)
class Cell:
    document: CellDocument
    rows: list[dict[str, Any]]

    def median(self, late: str, early: str, *, each: bool = False) -> float:
        """Median time between two stamps; per token after the first where ``each``."""
        times = [(row[late] - row[early]) / (row["output_tokens"] - 1 if each else 1) for row in self.rows]
        return float(np.median(times))


def cells(results: Path) -> dict[tuple[str, str, str], Cell]:
    """Valid cells by config, load and block, with the rows of their window."""
    found = {}
    for path in results.rglob("cell.json"):
        document = CellDocument.model_validate_json(path.read_bytes())
        if document.outcome == "valid":
            rows = pq.read_table(path.with_name("requests.parquet")).to_pylist()
            key = document.key
            found[key.config, key.load, key.block] = Cell(document, [row for row in rows if row["in_window"]])
    return found


@pytest.mark.parametrize("amounts", [OPEN, CLOSED], ids=["open", "closed"])
def test_both_clocks_send_the_same_and_see_the_same(write: Write, tmp_path: Path, amounts: dict[str, Any]) -> None:
    window = {"duration": "5s"} if amounts is OPEN else {"requests": 25}
    work = {"promptTokens": [300], "outputTokens": [12], "leadIn": "500ms", "window": window, "warmup": {"max": "1s"}}
    plan = {"blocks": {"min": 1}, "retries": 10}
    file = write(workload={**work, **amounts}, plan=plan, configs={"list": [{"max_num_batched_tokens": 256}]})
    command = [sys.executable, "-c", "from goodput.operator.cli import main; main()", "run", str(file), "--plain"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert simulate(file, out=str(tmp_path / "virtual"), profile=None, say=print) == 0

    real, virtual = cells(tmp_path / "results"), cells(tmp_path / "virtual")
    assert real.keys() == virtual.keys()
    assert len(real) == 2
    for key, measured in real.items():
        same_questions(measured, virtual[key], planned=amounts is OPEN)
        same_answers(measured, virtual[key])


def same_questions(real: Cell, virtual: Cell, *, planned: bool) -> None:
    one, other = real.document, virtual.document
    assert one.window is not None
    assert other.window is not None
    assert one.window.schedule_sha256 == other.window.schedule_sha256
    assert one.window.prompts_sha256 == other.window.prompts_sha256
    assert (one.load, one.config.flags, one.counts) == (other.load, other.config.flags, other.counts)
    assert one.provenance.resolved == other.provenance.resolved
    names = ["prompt_tokens", "output_tokens", "outcome", "token_source"]
    if planned:  # a closed loop's times, and with them its requests, are the server's doing
        names += ["request", "planned_s"]
    one_by_one = [[[row[name] for name in names] for row in cell.rows] for cell in (real, virtual)]
    assert one_by_one[0] == one_by_one[1]


def same_answers(real: Cell, virtual: Cell) -> None:
    kinds = (("first_s", "sent_s", False, TTFT_SECONDS), ("last_s", "first_s", True, TPOT_SECONDS))
    for late, early, each, bound in kinds:
        seen, predicted = (cell.median(late, early, each=each) for cell in (real, virtual))
        assert predicted == pytest.approx(seen, abs=bound)
