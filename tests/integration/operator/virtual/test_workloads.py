"""Every kind of workload in virtual time: what is sent and what the engine counts fit together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.operator.virtual.conftest import SPEC

from goodput.analysis.schema.cell import CellDocument
from goodput.operator.virtual.command import simulate

Write = Callable[..., Path]
BASE = {name: SPEC["workload"][name] for name in ("leadIn", "window", "warmup")}
TEXTS = [{"prompt": f"count from {index} to {index * 7}", "output_tokens": 3 + index % 5} for index in range(200)]


def cells(file: Path, out: Path) -> list[CellDocument]:
    assert simulate(file, out=str(out), profile=None, say=print) == 0
    return [CellDocument.model_validate_json(path.read_bytes()) for path in out.rglob("cell.json")]


def trace(folder: Path) -> str:
    lines = [f"2024-01-01 00:00:{index / 10:07.4f},{20 + index % 90},{2 + index % 9}" for index in range(590)]
    (folder / "trace.csv").write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *lines]))
    return f"file://{folder}/trace.csv"


def texts(folder: Path) -> str:
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, TEXTS)))
    return f"file://{folder}/rows.jsonl"


LENGTHS = {"promptTokens": [64], "outputTokens": [8]}
KINDS: dict[str, dict[str, Any]] = {
    "shared prefix": {**BASE, **LENGTHS, "requestRate": [10], "sharedPrefix": {"groups": 3, "tokens": 48}},
    "chat": {**BASE, **LENGTHS, "requestRate": [10], "endpoint": "chat"},
    "varied lengths": {
        **BASE, **LENGTHS, "requestRate": [10], "maxTokens": 900,
        "lengths": {"distribution": "lognormal", "variation": 0.5},
    },
    "stages": {
        "leadIn": "1s", "warmup": {"max": "1s"}, **LENGTHS,
        "stages": [{"duration": "3s", "rate": 2}, {"duration": "3s", "rate": 2, "endRate": 12}],
    },
    "burst": {"warmup": {"max": "1s"}, **LENGTHS, "arrival": "burst", "window": {"requests": 60}},
    "replay": {**BASE, "dataset": "trace", "maxTokens": 900, "arrival": "replay", "speed": [2]},
    "texts": {**BASE, "dataset": "jsonl", "maxTokens": 900, "concurrency": [2], "window": {"requests": 30}},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_cells_of_every_workload_are_valid(write: Write, tmp_path: Path, kind: str) -> None:
    work = dict(KINDS[kind])
    if "dataset" in work:
        work["datasetUri"] = (trace if work["dataset"] == "trace" else texts)(tmp_path)
    found = cells(write(workload=work, plan={"blocks": {"min": 1}}), tmp_path / "out")
    assert len(found) == 2
    for cell in found:
        assert (cell.outcome, cell.reason) == ("valid", None), cell.message
        assert cell.counts is not None
        assert cell.counts.completed == cell.counts.attempted > 10
        assert cell.server is not None
        assert cell.server.counts_agree
        assert cell.server.prefix_hit_ratio == pytest.approx(cell.asked.prefix_hit_ratio, abs=0.01)


def test_prompts_of_a_group_are_found_in_the_cache(write: Write, tmp_path: Path) -> None:
    found = cells(write(workload=KINDS["shared prefix"], plan={"blocks": {"min": 1}}), tmp_path / "out")
    for cell in found:
        assert cell.server is not None
        assert cell.server.prefix_hit_ratio is not None
        assert 0.6 < cell.server.prefix_hit_ratio < 0.75, "48 of 64 tokens, but for the first of each group"
