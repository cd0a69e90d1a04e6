"""Goodput and attainment over load, drawn from the rows of ``tables/goodput``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from goodput.analysis.draw import Plot, Series, legend
from goodput.analysis.figures import LIMIT, SERIES, inline_svg, styled, two_panels
from goodput.analysis.result import AnalysisResult, shape
from goodput.analysis.schema.planned import Load
from goodput.analysis.tables import Row


def load_plots(result: AnalysisResult, rows: Sequence[Row]) -> list[Plot]:
    """Goodput and attainment over load, one figure per shape."""
    shapes = dict.fromkeys(shape(load) for load in result.loads.values())
    plots = [_load_plot(result, rows, each, index) for index, each in enumerate(shapes)]
    return [plot for plot in plots if plot is not None]


def _load_plot(result: AnalysisResult, rows: Sequence[Row], of: str, index: int) -> Plot | None:
    loads = [load for load in result.loads.values() if shape(load) == of]
    ids = {load.id: load.amount for load in loads}
    found = [row for row in rows if row["load"] in ids and row["blocks"]]
    if not found:
        return None
    ranked = _ranked(result, {row["config"] for row in found})
    with styled():
        fig, goodput, attainment = two_panels(synthetic=result.synthetic)
        for position, config in enumerate(ranked):
            at = [(ids[row["load"]], row) for row in found if row["config"] == config]
            points = tuple(sorted(at, key=lambda point: point[0]))
            label = result.name(config)
            Series(label, position, points, "goodput", "per_second").draw(goodput)
            Series(label, position, points, "attainment", "ratio").draw(attainment)
        if loads[0].request_rate:
            xs = sorted(ids.values())
            goodput.plot(xs, xs, color="#777777", linewidth=0.8, linestyle=":", label="all offered requests good")
        attainment.axhline(result.slo.attainment, color=LIMIT, linewidth=1.1, label="target attainment")
        goodput.set(xlabel=_unit(loads[0]), ylabel="good requests per second", title="Goodput")
        attainment.set(xlabel=_unit(loads[0]), ylabel="good / attempted", title="Attainment", ylim=(-0.03, 1.05))
        goodput.set_ylim(bottom=0)
        for axes in (goodput, attainment):
            axes.set_xlim(left=0)
        legend(fig, [goodput, attainment])
        title = f"Goodput and attainment over load, {of}"
        svg = inline_svg(fig, f"load{index}", title)
    hidden = max(0, len(ranked) - SERIES)
    caption = "Bars: 95 % t interval over blocks. Hollow: saturated, does not count for the score."
    return Plot(title, svg, caption + (f" Grey: {hidden} more configs." if hidden else ""))


def _ranked(result: AnalysisResult, configs: Iterable[str]) -> list[str]:
    scores = result.decision.scores
    order = {config.id: index for index, config in enumerate(result.spec.configs)}
    if len(order) <= SERIES:
        return sorted(configs, key=order.__getitem__)
    return sorted(configs, key=lambda config: (-(scores[config].value or 0.0), order[config]))


def _unit(load: Load) -> str:
    if load.speed is not None:
        return "speed of the trace, times its own"
    if load.concurrency is not None:
        return "requests in flight (closed loop)"
    if load.arrival == "burst":
        return "requests of the burst"
    return "highest planned requests per second" if load.stages else "offered requests per second"
