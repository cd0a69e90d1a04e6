"""``tables/configs``: one row per config with its score, provenance, starts, cost and exact server command."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa

from goodput.analysis import stats
from goodput.analysis.cells import Cell
from goodput.analysis.goodput_table import known, start_cells
from goodput.analysis.result import AnalysisResult
from goodput.analysis.schema.base import PRIME
from goodput.analysis.schema.planned import Config
from goodput.analysis.schema.provenance import Provenance, StartLog
from goodput.analysis.tables import BOOL, FLOAT, INT, TEXT, Columns, Row, build, flag_cells

PROVENANCE = (
    "engine_version",
    "model",
    "model_revision",
    "image",
    "image_digest",
    "torch",
    "cuda",
    "driver",
    "gpu",
    "gpu_uuid",
    "node",
    "url",
    "simulated",
    "goodput_version",
    "engine_commit",
    "model_content",
)
IDS: Columns = {"config": TEXT, "engine": TEXT, "kind": TEXT}
REST: Columns = {
    "reference": BOOL,
    "gpus": INT,
    "verdict": TEXT,
    "score": FLOAT,
    "chosen_loads": TEXT,
    "cells_planned": INT,
    "cells_measured": INT,
    "trials": INT,
    "failure_reasons": TEXT,
    "start_seconds": FLOAT,
    "cold_start_seconds": FLOAT,
    "warm_start_seconds": FLOAT,
    "compile_cache_hit_ratio": FLOAT,
    "start_order": TEXT,
    "prime_seconds": FLOAT,
    "warmup_seconds": FLOAT,
    "output_pairs": INT,
    "identical_outputs_ratio": FLOAT,
    "same_output_tokens_mean": FLOAT,
    "gpu_seconds": FLOAT,
    **dict.fromkeys(PROVENANCE, TEXT),
    "gpu_memory_gib": FLOAT,
    "attention_backend": TEXT,
    "kv_cache_tokens": FLOAT,
    "resolved": TEXT,
    "flags": TEXT,
    "command": TEXT,
}


def configs_table(result: AnalysisResult) -> pa.Table:
    """The table, as the spec lists the configs. ``score``: per second, per GPU where GPU counts differ."""
    flags, values = flag_cells(result.spec.configs, [*IDS, *REST])
    cells: dict[str, list[Cell]] = {config.id: [] for config in result.spec.configs}
    for cell in result.cells:
        cells[cell.document.key.config].append(cell)
    planned = Counter(cell.key.config for cell in result.planned)
    rows = [
        _row(result, config, cells[config.id]) | values[config.id] | {"cells_planned": planned[config.id]}
        for config in result.spec.configs
    ]
    return build(rows, {**IDS, **flags, **REST}, result.spec)


def _row(result: AnalysisResult, config: Config, cells: Sequence[Cell]) -> Row:
    mine = [trial for trial in result.states.trials if trial.config == config.id]
    trials = [trial for trial in mine if trial.block != PRIME]
    return {
        "config": config.id,
        "engine": config.engine,
        "kind": config.kind,
        "reference": config.id == result.spec.reference,
        "gpus": config.gpus,
        "verdict": result.standing(config.id),
        "score": result.decision.scores[config.id].value,
        "chosen_loads": " ".join(result.chosen(config.id)) or None,
        "cells_measured": len(cells),
        "trials": len(trials),
        "failure_reasons": _distinct(trial.reason for trial in mine),
        **start_cells(cells),
        "prime_seconds": stats.mean(known(trial.start_seconds for trial in mine if trial.block == PRIME)),
        "warmup_seconds": stats.mean(known(cell.document.start.warmup_seconds for cell in cells)),
        **_equality(result, config.id),
        "gpu_seconds": total_gpu_seconds(result, config.id),
        **provenance(cells),
        "flags": json.dumps(config.flags, sort_keys=True),
        "command": shlex.join(config.command) or None,
    }


def _equality(result: AnalysisResult, config: str) -> Row:
    """Against the reference; the reference against its own first block."""
    found = result.equality.get(config)
    return {
        "output_pairs": None if found is None else found.compared,
        "identical_outputs_ratio": None if found is None else found.ratio,
        "same_output_tokens_mean": None if found is None else found.same_tokens_mean,
    }


def total_gpu_seconds(result: AnalysisResult, config: str) -> float | None:
    """Over all attempts of all trials, starts included, as the driver counted them; None where it did not."""
    spent = known(trial.gpu_seconds for trial in result.states.trials if trial.config == config)
    return math.fsum(spent) if spent else None


def provenance(cells: Sequence[Cell]) -> Row:
    """What the cells were measured on. Values that differ between cells are all there, joined by ``; ``."""
    found = [cell.document.provenance for cell in cells]
    row: Row = {name: _distinct(getattr(each, name) for each in found) for name in PROVENANCE}
    logs = [cell.document.start.log or StartLog() for cell in cells]
    return row | {
        "gpu_memory_gib": stats.mean(known(each.gpu_memory_gib for each in found)),
        "attention_backend": _distinct(log.attention_backend for log in logs),
        "kv_cache_tokens": stats.mean(known(log.kv_cache_tokens for log in logs)),
        "resolved": _distinct(_resolved(each) for each in found),
    }


def _resolved(each: Provenance) -> str | None:
    return json.dumps(each.resolved, sort_keys=True) if each.resolved else None


def _distinct(values: Iterable[str | None]) -> str | None:
    return "; ".join(dict.fromkeys(value for value in values if value is not None)) or None
