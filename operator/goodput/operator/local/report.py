"""The end of a local run: the goodput table, the leader with its verdict, where the report is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goodput.analysis.store import StoreError, open_store
from goodput.analysis.uri import file_path
from goodput.operator.sweep import Sweep


def final_text(sweep: Sweep, status: Mapping[str, Any]) -> str:
    """Table, leader and report as text; what went wrong where there is none."""
    return "\n".join(["", *_table(sweep), *_trouble(status), *_report(sweep)])


def _table(sweep: Sweep) -> list[str]:
    from goodput.analysis.analyze import NO_STATES, judge_sweep  # noqa: PLC0415  # slow to load, wanted once
    from goodput.analysis.errors import AnalysisError  # noqa: PLC0415
    from goodput.analysis.read import read_states  # noqa: PLC0415
    from goodput.analysis.text_table import format_table  # noqa: PLC0415

    results = sweep.spec.results
    try:
        store = open_store(sweep.results_uri, endpoint=results.endpoint, region=results.region)
        return [format_table(judge_sweep(store, read_states(store) or NO_STATES)), ""]
    except (AnalysisError, StoreError) as error:
        return [f"no table: {error}", ""]


def _trouble(status: Mapping[str, Any]) -> list[str]:
    counts = status.get("counts") or {}
    missing = {name: counts.get(key) for name, key in _STATES.items() if counts.get(key)}
    if not missing:
        return []
    text = ", ".join(f"{count} {name}" for name, count in missing.items())
    error = status.get("lastError")
    why = f"; last error: {error['reason']}: {error['message']}" if error else ""
    return [f"cells without a result: {text}{why}"]


_STATES = {"void": "void", "failed": "failed", "pruned": "pruned", "not run": "notRun"}


def _report(sweep: Sweep) -> list[str]:
    uri = f"{sweep.results_uri}/report.html"
    return [f"report: {file_path(uri) or uri}"]
