"""``tables/cells``: one row per planned cell, measured or not, with the reason. What was not run is never hidden."""

from __future__ import annotations

import pyarrow as pa

from goodput.analysis import cells_requests, cells_run, cells_server
from goodput.analysis.cells import Cell
from goodput.analysis.columns import IDS, LOAD
from goodput.analysis.goodput_table import gpu_seconds, load_cells
from goodput.analysis.planned import PlannedCell
from goodput.analysis.result import AnalysisResult
from goodput.analysis.tables import BOOL, INT, TEXT, Columns, Row, build, flag_cells

STATE: Columns = {"block": TEXT, "sentinel": BOOL, "state": TEXT, "reason": TEXT, "attempt": INT, "void_attempts": INT}
MEASURED: Columns = {**cells_requests.COLUMNS, **cells_server.COLUMNS, **cells_run.COLUMNS}
FIXED: Columns = {**IDS, **STATE, **LOAD, **MEASURED}


def cells_table(result: AnalysisResult) -> pa.Table:
    """The table: planned cells by config, load and block, then those measured beyond the plan."""
    flags, values = flag_cells(result.spec.configs, list(FIXED))
    measured = {cell.document.key: cell for cell in result.cells}
    rows = [
        _planned(result, planned, measured.get(planned.key), values[planned.key.config])
        | _measured(result, measured.get(planned.key))
        for planned in result.planned
    ]
    ids = {**IDS, **flags, **STATE, **LOAD}
    return build(rows, {**ids, **{name: kind for name, kind in FIXED.items() if name not in ids}}, result.spec)


def _planned(result: AnalysisResult, planned: PlannedCell, cell: Cell | None, flags: Row) -> Row:
    config, load = result.configs[planned.key.config], result.loads[planned.key.load]
    return {
        "config": config.id,
        "load": load.id,
        "engine": config.engine,
        **flags,
        "block": planned.key.block,
        "sentinel": planned.sentinel,
        "state": planned.state,
        "reason": planned.reason,
        "attempt": None if cell is None else cell.document.attempt,
        "void_attempts": planned.voids,
        **load_cells(load),
    }


def _measured(result: AnalysisResult, cell: Cell | None) -> Row:
    if cell is None:
        return dict.fromkeys(MEASURED)
    seconds = gpu_seconds(result.configs[cell.document.key.config], [cell])
    return (
        cells_requests.request_columns(cell)
        | cells_server.server_columns(cell, result.slo)
        | cells_run.run_columns(cell, seconds)
    )
