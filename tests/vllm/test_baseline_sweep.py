"""`goodput run examples/baseline-vs-vllm.yaml`: both engines in one table."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.vllm.run import GOODPUT, shown

if TYPE_CHECKING:
    from tests.vllm.conftest import Vllm

SWEEP = Path(__file__).parents[2] / "examples" / "baseline-vs-vllm.yaml"
ENGINES, LOADS, BLOCKS = ("baseline", "vllm"), 8, 2
pytestmark = [pytest.mark.vllm, pytest.mark.timeout(3000)]


def test_the_same_grid_runs_on_both_engines_in_one_table(vllm: Vllm, tmp_path: Path) -> None:
    (tmp_path / vllm.model.name).symlink_to(vllm.model)
    output = shown([*GOODPUT, "run", str(SWEEP), "--plain"], tmp_path, vllm.environment())
    (folder,) = (tmp_path / "results").iterdir()
    goodput, cells, configs = (
        pq.read_table(folder / "tables" / f"{name}.parquet").to_pylist() for name in ("goodput", "cells", "configs")
    )
    assert Counter(row["state"] for row in cells) == {"measured": len(ENGINES) * LOADS * BLOCKS}
    grids = {
        engine: {
            (row["prompt_tokens"], row["output_tokens"], row["concurrency"])
            for row in goodput
            if row["engine"] == engine and row["output_tokens_per_second"] > 0
        }
        for engine in ENGINES
    }
    assert grids["baseline"] == grids["vllm"]
    assert len(grids["vllm"]) == LOADS
    lines = [line.lstrip("* ").split() for line in output.splitlines()]
    assert Counter(words[0] for words in lines if words[1:2] == ["–"]) == dict.fromkeys(ENGINES, LOADS)
    assert {row["engine"]: row["engine_version"] for row in configs} == {
        "baseline": "5.19.0",
        "vllm": "0.32.0",
    }
    for path in folder.rglob("cell.json"):
        document = json.loads(path.read_text())
        of_baseline = document["config"]["engine"] == "baseline"
        assert document["provenance"]["resolved"]["dtype"].removeprefix("torch.") == "float32"
        assert of_baseline == ("the Transformers baseline keeps no prefix cache" in " ".join(document["warnings"]))
        assert document["server"]["running_max"] <= (1 if of_baseline else 16)
        assert document["server"]["counts_agree"] is True
