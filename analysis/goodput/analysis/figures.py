"""How every plot looks, and how it becomes inline SVG.

Colours are those of Okabe and Ito (Color Universal Design), and every series has its own marker and dash as well, so
that plots read without colour and in print. Text stays text.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A7A00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), (0, (3, 2)), (0, (7, 2)), (0, (2, 1)))
LIMIT = "#A00000"
REST = "#B8B8B8"
SERIES = len(COLOURS)
WIDTH_INCHES, PANEL_INCHES = 11.4, 2.5
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "goodput",
    "text.parse_math": False,  # a flag's value may hold a dollar sign
    "font.family": "sans-serif",
    "font.sans-serif": ["Liberation Sans", "Arial", "Helvetica", "DejaVu Sans"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw inside this: our style, and no warning about a glyph that the drawing machine's fonts lack."""
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message=".*findfont.*")
        yield


def look(index: int) -> dict[str, Any]:
    """Colour, marker and dash of the k-th series."""
    return {
        "color": COLOURS[index % SERIES],
        "marker": MARKERS[index % SERIES],
        "linestyle": DASHES[index % SERIES],
        "markersize": 5,
        "linewidth": 1.4,
        "capsize": 2.5,
    }


def two_panels(*, synthetic: bool) -> tuple[Figure, Axes, Axes]:
    """A figure as wide as the page; synthetic numbers are marked inside the drawing. `fit` sets its height."""
    fig = Figure()
    left, right = fig.subplots(1, 2)
    if synthetic:
        fig.text(0.5, 0.99, "SYNTHETIC", color=LIMIT, weight="bold", ha="center", va="top")
    return fig, left, right


def fit(fig: Figure, legend_rows: int) -> None:
    """Size and margins in inches. Computed here: matplotlib's layout engines draw everything several times."""
    below = 0.62 + 0.21 * legend_rows
    height = 0.4 + PANEL_INCHES + below
    fig.set_size_inches(WIDTH_INCHES, height)
    fig.subplots_adjust(
        left=0.65 / WIDTH_INCHES,
        right=1 - 0.15 / WIDTH_INCHES,
        bottom=below / height,
        top=1 - 0.4 / height,
        wspace=0.16,
    )


def inline_svg(fig: Figure, name: str, description: str) -> str:
    """The figure as an ``<svg>`` element for HTML. The same figure gives the same text.

    Ids get ``name`` before them, so that several figures can share a page; ``description`` is read to those who
    cannot see it.
    """
    sink = io.StringIO()
    FigureCanvasSVG(fig).print_svg(sink, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    svg = sink.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{_attribute(description)}" ', 1)


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
