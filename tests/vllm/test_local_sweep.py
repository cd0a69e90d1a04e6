"""`goodput run examples/vllm-cpu.yaml`: the product on one machine, against the engine that it is made for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.vllm import checks
from tests.vllm.run import GOODPUT, shown

from goodput.analysis.packing import unpack

if TYPE_CHECKING:
    from tests.vllm.conftest import Vllm

SWEEP = Path(__file__).parents[2] / "examples" / "vllm-cpu.yaml"
TRIALS, CELLS = 4, 8
pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1500)]


@dataclass(frozen=True)
class Swept:
    """What the run printed and left in the store."""

    output: str
    folder: Path

    def table(self, name: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pq.read_table(self.folder / "tables" / f"{name}.parquet").to_pylist()
        return rows

    def attempts(self) -> list[Path]:
        """Folders of the attempts that are results."""
        results = sorted(self.folder.rglob("_RESULT.json"))
        return [path.parent / f"attempt={json.loads(path.read_text())['attempt']}" for path in results]

    def documents(self) -> list[dict[str, Any]]:
        return [json.loads((attempt / "cell.json").read_text()) for attempt in self.attempts()]


@pytest.fixture(scope="module")
def swept(vllm: Vllm, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    folder = tmp_path_factory.mktemp("sweep")
    (folder / vllm.model.name).symlink_to(vllm.model)
    output = shown([*GOODPUT, "run", str(SWEEP), "--plain"], folder, vllm.environment())
    (results,) = (folder / "results").iterdir()
    return Swept(output, results)


def test_every_cell_is_measured(swept: Swept) -> None:
    checks.all_measured(swept.table("cells"), CELLS)
    assert "Succeeded" in swept.output.splitlines()[-1]
    assert "SYNTHETIC" not in swept.output
    rows = swept.table("goodput")
    assert len(rows) == CELLS // 2
    assert all(row["blocks"] == 2 and row["ttft_p50_seconds"] > 0 and row["tpot_p50_seconds"] > 0 for row in rows)


def test_token_counts_are_exact(swept: Swept) -> None:
    for attempt in swept.attempts():
        document = json.loads((attempt / "cell.json").read_text())
        checks.lengths_are_exact(document, pq.read_table(attempt / "requests.parquet"))


def test_provenance_is_complete(swept: Swept) -> None:
    checks.provenance_is_complete(swept.table("configs"), swept.documents())
    assert len({row["model_content"] for row in swept.table("configs")}) == 1
    assert all(row["model_content"] for row in swept.table("configs"))


def test_the_log_of_each_start_is_parsed(swept: Swept) -> None:
    cells = swept.table("cells")
    checks.log_is_parsed(cells)
    assert {row["compile_cache"] for row in cells} == {None}, "nothing is compiled with enforce_eager"


def test_the_log_of_every_server_is_kept_until_its_trial_ended(swept: Swept) -> None:
    logs = [unpack(path.read_bytes()).decode() for path in swept.folder.glob("trials/*/*/*/server.log.zst")]
    assert all("version 0.32.0" in log for log in logs)
    ready = [log for log in logs if "Application startup complete" in log]  # another program may take a server's port
    assert len(ready) >= TRIALS
    for log in ready:
        assert "CPU KV cache size: 46,592 tokens" in log
        assert '"POST /v1/completions HTTP/1.1" 200 OK' in log.partition("Application startup complete")[2]
