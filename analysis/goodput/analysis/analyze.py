"""The whole of it: from a sweep's folder to tables, report, best.yaml. Can be repeated at any time."""

from __future__ import annotations

from goodput.analysis import ids
from goodput.analysis.ask import contenders, question, sentinel
from goodput.analysis.best import best_yaml
from goodput.analysis.cells import measure
from goodput.analysis.cells_table import cells_table
from goodput.analysis.configs_table import configs_table
from goodput.analysis.decide import decide, doubted
from goodput.analysis.errors import AnalysisError
from goodput.analysis.goodput_table import goodput_table
from goodput.analysis.interval import best_interval
from goodput.analysis.planned import planned_cells
from goodput.analysis.read import read_index, read_results, read_spec, read_states, read_voids
from goodput.analysis.report import report_html
from goodput.analysis.result import AnalysisResult
from goodput.analysis.schema.planned import Slo
from goodput.analysis.schema.sweep import StatesDocument
from goodput.analysis.store import Store
from goodput.analysis.tables import csv_bytes, parquet_bytes

NO_STATES = StatesDocument(generation=0)


def run_analysis(store: Store, states: StatesDocument | None = None, slo: Slo | None = None) -> AnalysisResult:
    """Judge what is in ``store`` (a sweep's folder), and write tables, report and ``best.yaml`` there.

    Args:
        store: the sweep's folder.
        states: what only the driver knows; written first, unless a later generation is there already, which then
            counts. None: what is there.
        slo: judge by another SLO; the output then goes to ``tables/slo=<hash>/``.

    Raises:
        AnalysisError: no sweep, or records that cannot be trusted.
        StoreError: the store refused.
    """
    result = judge_sweep(store, _latest(store, states), slo)
    for key, data in outputs(result).items():
        store.put(key, data)
    return result


def changed_slo(store: Store, **limits: float | None) -> Slo | None:
    """The spec's SLO with those of ``ttft, tpot, itl, e2e, attainment`` that are given; None where none is."""
    given = {name: value for name, value in limits.items() if value is not None}
    return Slo.model_validate(read_spec(store).slo.model_dump() | given) if given else None


def judge_sweep(store: Store, states: StatesDocument, slo: Slo | None = None) -> AnalysisResult:
    """Read and decide; writes nothing."""
    spec = read_spec(store)
    limits = spec.slo if slo is None else slo
    index = read_index(store)
    cells = tuple(read_results(store, spec, index, lambda document, table: measure(document, table, limits)))
    known = {config.id for config in spec.configs}
    strangers = sorted({key.config for key in index.commits} - known)
    if strangers:
        raise AnalysisError(f"{store.uri}: cells of configs that spec.json does not plan: {', '.join(strangers)}")
    field, asked = contenders(spec, states, cells), question(spec, limits)
    datasets = {cell.document.provenance.dataset.sha256 for cell in cells if cell.document.provenance.dataset}
    decision = doubted(decide(field, asked, sentinel(cells)), datasets)
    return AnalysisResult(
        spec=spec,
        states=states,
        slo=limits,
        cells=cells,
        planned=planned_cells(spec, index.results, read_voids(store, index), states.cells),
        decision=decision,
        interval=best_interval(field, decision, asked),
    )


def outputs(result: AnalysisResult) -> dict[str, bytes]:
    """Key → bytes of everything that is derived."""
    tables = {"goodput": goodput_table(result), "configs": configs_table(result), "cells": cells_table(result)}
    folder = tables_folder(result)
    files: dict[str, bytes] = {}
    for name, table in tables.items():
        files[f"{folder}/{name}.parquet"] = parquet_bytes(table)
        files[f"{folder}/{name}.csv"] = csv_bytes(table)
    below = "" if result.slo == result.spec.slo else f"{folder}/"
    files[f"{below}report.html"] = report_html(result, tables["goodput"], tables["configs"])
    files[f"{below}best.yaml"] = best_yaml(result)
    return files


def tables_folder(result: AnalysisResult) -> str:
    """Where the tables go: of another SLO, with its hash in the name."""
    if result.slo == result.spec.slo:
        return "tables"
    return f"tables/slo={ids.digest(result.slo.model_dump(exclude_none=True))}"


def _latest(store: Store, states: StatesDocument | None) -> StatesDocument:
    stored = read_states(store)
    if states is None:
        return stored or NO_STATES
    if stored is not None and stored.generation > states.generation:
        return stored
    store.put("states.json", states.to_json())
    return states
