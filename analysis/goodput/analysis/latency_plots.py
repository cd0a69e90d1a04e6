"""TTFT and TPOT against a swept flag, one figure per load point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goodput.analysis.columns import FIXED
from goodput.analysis.draw import Plot, Series, legend, number_ticks, positive_axis
from goodput.analysis.figures import LIMIT, SERIES, inline_svg, styled, two_panels
from goodput.analysis.result import AnalysisResult
from goodput.analysis.schema.planned import Load
from goodput.analysis.tables import Row, flag_columns

PREFERRED = "max_num_batched_tokens"


@dataclass(frozen=True)
class Axis:
    """What latencies are shown against: a swept flag and its column in ``tables/goodput``."""

    flag: str
    column: str


def latency_plots(result: AnalysisResult, rows: Sequence[Row]) -> list[Plot]:
    """One figure per load point that has latencies; none where no numeric flag is swept."""
    axis = swept_number(result, rows)
    if axis is None:
        return []
    plots = [_latency_plot(result, rows, axis, load, index) for index, load in enumerate(result.loads.values())]
    return [plot for plot in plots if plot is not None]


def swept_number(result: AnalysisResult, rows: Sequence[Row]) -> Axis | None:
    """Where it is swept max_num_batched_tokens, else the first flag with two numbers or more."""
    axes = [Axis(flag, column) for flag, column in flag_columns(result.spec.configs, list(FIXED)).items()]
    varied = [axis for axis in axes if len(_numbers(rows, axis)) > 1]
    return next((axis for axis in varied if axis.flag == PREFERRED), next(iter(varied), None))


def _numbers(rows: Sequence[Row], axis: Axis) -> set[float]:
    return {float(row[axis.column]) for row in rows if isinstance(row[axis.column], int | float)}


def _latency_plot(result: AnalysisResult, rows: Sequence[Row], axis: Axis, load: Load, index: int) -> Plot | None:
    load_id = load.id
    found = [row for row in rows if row["load"] == load_id and row["blocks"] and row[axis.column] is not None]
    ttft = "ttft" if load.arrival == "closed" else "scheduled_ttft"
    if not any(row[f"{ttft}_p95_seconds"] is not None for row in found):
        return None
    series: dict[str, list[Row]] = {}
    for row in sorted(found, key=lambda row: float(row[axis.column])):
        series.setdefault(_others(result, row["config"], axis.flag), []).append(row)
    with styled():
        fig, *panels = two_panels(synthetic=result.synthetic)
        pairs = ((ttft, "TTFT", result.slo.ttft), ("tpot", "TPOT", result.slo.tpot))
        for axes, (name, title, limit) in zip(panels, pairs, strict=True):
            for position, (label, points) in enumerate(list(series.items())[: SERIES // 2]):
                for offset, p in enumerate(("p50", "p95")):
                    at = tuple((float(row[axis.column]), row) for row in points)
                    Series(f"{p} {label}".strip(), 2 * position + offset, at, f"{name}_{p}", "seconds").draw(axes)
            if limit is not None:
                axes.axhline(limit, color=LIMIT, linewidth=1.1, label="SLO")
            axes.set(xlabel=axis.flag, ylabel="seconds", title=title)
            number_ticks(axes, [row[axis.column] for row in found])
            positive_axis(axes, found, [f"{name}_p50_seconds", f"{name}_p95_seconds"])
        legend(fig, panels)
        title = f"TTFT and TPOT against {axis.flag}, {load.label}"
        svg = inline_svg(fig, f"latency{index}", title)
    start = "" if load.arrival == "closed" else " TTFT from the planned send time."
    return Plot(title, svg, f"Means of block percentiles, bars: 95 % t interval over blocks.{start} Hollow: saturated.")


def _others(result: AnalysisResult, config: str, flag: str) -> str:
    """Label of what differs besides ``flag``."""
    engines = {each.engine for each in result.spec.configs}
    chosen = result.configs[config]
    rest = [f"{key}={value}" for key, value in sorted(chosen.swept.items()) if key != flag]
    return " ".join([*([chosen.engine] if len(engines) > 1 else []), *rest])
