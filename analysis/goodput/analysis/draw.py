"""One series with its intervals on a panel, and the legend: what all plots share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from goodput.analysis.figures import REST, SERIES, fit, look
from goodput.analysis.tables import Row

LIMITS = ("all offered", "target", "SLO")  # beginnings of labels that stand last in a legend


@dataclass(frozen=True)
class Plot:
    """An inline SVG with its caption."""

    title: str
    svg: str
    caption: str


@dataclass(frozen=True)
class Series:
    """Rows of ``tables/goodput`` at their x, and the column that is shown: ``<name>_<unit>`` and its interval."""

    label: str
    position: int  # decides the look; beyond the last look a thin grey line without a label
    points: tuple[tuple[float, Row], ...]  # ascending x
    name: str
    unit: str

    def draw(self, axes: Axes) -> None:
        """Draw it; points without a value are left out, saturated ones hollow."""
        points = [(x, row) for x, row in self.points if row[f"{self.name}_{self.unit}"] is not None]
        xs, values = [x for x, _ in points], [row[f"{self.name}_{self.unit}"] for _, row in points]
        if self.position >= SERIES:
            axes.plot(xs, values, color=REST, linewidth=0.8, zorder=1)
            return
        low = [row[f"{self.name}_low_{self.unit}"] for _, row in points]
        high = [row[f"{self.name}_high_{self.unit}"] for _, row in points]
        below = [_gap(value, limit) for value, limit in zip(values, low, strict=True)]
        above = [_gap(limit, value) for value, limit in zip(values, high, strict=True)]
        style = look(self.position)
        axes.errorbar(xs, values, yerr=[below, above], label=self.label, zorder=3 - self.position / 100, **style)
        hollow = [x for x, row in points if row["load_state"] == "saturated"]
        heights = [value for value, (_, row) in zip(values, points, strict=True) if row["load_state"] == "saturated"]
        marker = {key: style[key] for key in ("color", "marker", "markersize")}
        axes.plot(hollow, heights, linestyle="", markerfacecolor="white", zorder=4, **marker)


def legend(fig: Figure, panels: Sequence[Axes]) -> None:
    """One legend below all panels: series first, limits last. Fits the figure to it."""
    entries: dict[str, Artist] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    order = sorted(entries, key=lambda label: label.startswith(LIMITS))
    columns = max(1, min(3, len(order)))
    fit(fig, legend_rows=-(-len(order) // columns))
    fig.legend([entries[label] for label in order], order, loc="lower center", ncols=columns, borderaxespad=0.1)


def positive_axis(axes: Axes, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """The y axis from zero; logarithmic where the values span a factor of twenty."""
    values = [row[column] for row in rows for column in columns if row[column]]
    if values and min(values) > 0 and max(values) > 20 * min(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)


def number_ticks(axes: Axes, values: Sequence[float]) -> None:
    """Ticks at the values themselves, on a logarithmic axis where they span a factor of eight."""
    ticks = sorted({float(value) for value in values})
    if ticks[0] > 0 and ticks[-1] / ticks[0] >= 8:
        axes.set_xscale("log", base=2)
    if len(ticks) <= 12:
        axes.set_xticks(ticks, [f"{tick:.10g}" for tick in ticks])
        axes.minorticks_off()


def _gap(high: float | None, low: float | None) -> float:
    return 0.0 if high is None or low is None else max(0.0, high - low)
