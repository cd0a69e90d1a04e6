"""``report.html``: one self-contained page. Everything that comes from a spec or a server is escaped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from goodput.analysis.failure_words import state
from goodput.analysis.formats import duration, number, per_cent, range_
from goodput.analysis.latency_plots import latency_plots
from goodput.analysis.load_plots import load_plots
from goodput.analysis.result import AnalysisResult
from goodput.analysis.tables import Row
from goodput.analysis.words import explain, unit

TEMPLATE = "report.html.j2"
ROWS = 400  # of the goodput table; the rest is in tables/goodput


@dataclass(frozen=True)
class NotMeasured:
    """Planned cells that share a config, a state and a reason."""

    config: str
    state: str
    reason: str
    cells: int


@dataclass(frozen=True)
class Warned:
    """Measured cells that share a config and a kind of warning, with the first one's words."""

    config: str
    warning: str
    cells: int


def report_html(result: AnalysisResult, goodput: pa.Table, configs: pa.Table) -> bytes:
    """The page, from the tables and the decision alone: the same input gives the same bytes."""
    rows = goodput.to_pylist()
    plots = [*load_plots(result, rows), *latency_plots(result, rows)]
    page = _environment().get_template(TEMPLATE)
    return page.render(
        result=result,
        spec=result.spec,
        decision=result.decision,
        headline=_headline(result),
        message=explain(result),
        slo=slo_words(result),
        rows=_ordered(result, rows)[:ROWS],
        more_rows=max(0, len(rows) - ROWS),
        plots=[(plot, Markup(plot.svg)) for plot in plots],  # noqa: S704  # our own SVG; its texts are escaped
        configs=configs.to_pylist(),
        not_measured=not_measured(result),
        warned=warned(result),
        planned=len(result.planned),
        measured=len(result.cells),
        ttft="ttft" if all(load.arrival == "closed" for load in result.spec.loads) else "scheduled_ttft",
    ).encode()


def slo_words(result: AnalysisResult) -> str:
    """The SLO in one line."""
    limits = [
        f"{name.upper() if name != 'e2e' else 'end to end'} ≤ {duration(limit)}"
        for name in ("ttft", "tpot", "itl", "e2e")
        if (limit := getattr(result.slo, name)) is not None
    ]
    return f"{' and '.join(limits) or 'no latency limit'}, for at least {per_cent(result.slo.attainment)} of requests"


def not_measured(result: AnalysisResult) -> list[NotMeasured]:
    """Planned cells without a valid result, grouped, in the order of the plan."""
    groups = Counter(
        (cell.key.config, cell.state, cell.reason or "") for cell in result.planned if cell.state != "measured"
    )
    return [NotMeasured(result.name(config), state, reason, cells) for (config, state, reason), cells in groups.items()]


def warned(result: AnalysisResult) -> list[Warned]:
    """Warnings of measured cells, grouped by config and kind (what stands before the colon), in the plan's order."""
    groups: dict[tuple[str, str], list[str]] = {}
    for cell in result.cells:
        for warning in cell.document.warnings:
            groups.setdefault((cell.document.key.config, warning.partition(":")[0]), []).append(warning)
    return [Warned(result.name(config), each[0], len(each)) for (config, _), each in groups.items()]


def _headline(result: AnalysisResult) -> dict[str, str]:
    decision = result.decision
    if decision.best is None:
        return {"leader": "No config meets the SLO", "score": "", "interval": "", "unit": "", "loads": ""}
    return {
        "leader": result.name(decision.best),
        "score": number(decision.scores[decision.best].value),
        "interval": range_(result.interval),
        "unit": unit(result),
        "loads": ", ".join(result.loads[load].label for load in result.chosen(decision.best)),
    }


def _ordered(result: AnalysisResult, rows: Sequence[Row]) -> list[Row]:
    """By score, then as the spec lists the configs; loads ascending."""
    order = {config.id: index for index, config in enumerate(result.spec.configs)}
    scores = result.decision.scores
    return sorted(rows, key=lambda row: (-(scores[row["config"]].value or 0.0), order[row["config"]]))


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("goodput.analysis", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        "number": number,
        "per_cent": per_cent,
        "milliseconds": _milliseconds,
        "breakable": _breakable,
        "state": state,
    }
    environment.filters.update(filters)
    return environment


def _breakable(text: str) -> Markup:
    """Escaped, and with leave to break lines after ``_`` and ``=``."""
    return Markup(re.sub(r"(_|=)", r"\1<wbr>", str(escape(text))))  # noqa: S704  # escaped here


def _milliseconds(seconds: float | None) -> str:
    return number(None if seconds is None else seconds * 1000)
