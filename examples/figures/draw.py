"""Draws the two figures of the teaching models from simulated results: draw.py RESULTS PICTURES (make figures).

RESULTS is the folder that `goodput simulate` wrote both sweeps of this folder to.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from goodput.analysis.figures import COLOURS, LIMIT, inline_svg, styled

MARK = "TEACHING MODEL, NOT A MEASUREMENT"
SECONDS = (1, 2, 5, 10, 20, 50)
Row = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """A figure's file name and its content."""

    name: str
    svg: str


def rows(results: Path, sweep: str) -> list[Row]:
    """The rows of a simulated sweep's ``tables/goodput``."""
    (table,) = results.glob(f"sweep=virtual.{sweep}.*/tables/goodput.parquet")
    found: list[Row] = pq.read_table(table).to_pylist()
    if any(row["evidence"] != "synthetic" for row in found):
        raise ValueError(f"{table} holds measurements, and the picture would call them a model's")
    return found


def curve(found: Sequence[Row], flag: str, value: str) -> list[Row]:
    """Rows of the configs with that flag's value, by concurrency."""
    return sorted((row for row in found if str(row[flag]) == value), key=lambda row: row["concurrency"])


def by_budget(found: Sequence[Row]) -> list[Row]:
    """Rows by token budget."""
    return sorted(found, key=lambda row: int(row["max_num_batched_tokens"]))


def latency_throughput(found: Sequence[Row]) -> Picture:
    """Tokens per second over concurrency, and over the latency that they cost."""
    kinds = (("1", "one request at a time (max_num_seqs=1)"), ("64", "continuous batching (max_num_seqs=64)"))
    title = "2,048 input and 64 output tokens: output tokens per second"
    with styled():
        fig, (left, right) = _panels(2, f"{title} · {MARK} (profile one-device, virtual time)")
        for index, (value, label) in enumerate(kinds):
            points = curve(found, "max_num_seqs", value)
            tokens = [row["output_tokens_per_second"] for row in points]
            style: dict[str, Any] = {"marker": "os"[index], "color": COLOURS[index], "label": label}
            left.plot([row["concurrency"] for row in points], tokens, **style)
            right.plot([row["e2e_mean_seconds"] for row in points], tokens, **style)
            left.annotate(f"{tokens[-1]:.1f}", (points[-1]["concurrency"], tokens[-1]), **_above())
            for row in points:
                at = (row["e2e_mean_seconds"], row["output_tokens_per_second"])
                right.annotate(str(row["concurrency"]), at, **_above())
        left.set_xscale("log", base=2)
        ticks = [row["concurrency"] for row in curve(found, "max_num_seqs", "1")]
        left.set_xticks(ticks, [str(tick) for tick in ticks])
        left.set(xlabel="concurrency (closed loop)", ylabel="output tokens per second")
        right.set(xlabel="mean end-to-end latency, seconds; numbers: concurrency", xscale="log")
        right.set_xticks(SECONDS, [str(tick) for tick in SECONDS])
        right.minorticks_off()
        for axes in (left, right):
            axes.set_ylim(0, 600)
        left.legend(loc="upper left")
        return Picture("latency-throughput.svg", inline_svg(fig, "latency-throughput", f"{title}. {MARK}"))


def chunk_budget(found: Sequence[Row]) -> Picture:
    """What the token budget does to throughput, to the first token and to the others, and to the promise."""
    points = by_budget(found)
    labels = [f"{int(row['max_num_batched_tokens']):,}" for row in points]
    title = "8K prefills mixed with decodes, by token budget"
    panels = (
        ("output_tokens_per_second", 1.0, "output tokens per second", "{:.0f}", None),
        ("ttft_mean_seconds", 1000.0, "mean TTFT, ms", "{:.0f}", None),
        ("tpot_mean_seconds", 1000.0, "mean TPOT, ms", "{:.2f}", None),
        ("attainment_ratio", 100.0, "good requests, %", "{:.1f}", 90.0),
    )
    with styled():
        fig, all_axes = _panels(4, f"{title} · {MARK} (profile fixed-price, virtual time)")
        for axes, (column, scale, label, form, target) in zip(all_axes, panels, strict=True):
            values = [row[column] * scale for row in points]
            missed = [row["attainment_ratio"] < 0.9 for row in points]
            axes.bar(labels, values, color=[LIMIT if miss else COLOURS[0] for miss in missed], width=0.65)
            for index, value in enumerate(values):
                axes.annotate(form.format(value), (index, value), **_above(2))
            if target is not None:
                axes.axhline(target, color="#333333", linewidth=1.1, linestyle="--", zorder=0.5)
            axes.set_axisbelow(True)
            axes.set(title=label, ylim=(0, 1.15 * max(values)))
            axes.tick_params(axis="x", rotation=45)
        legend = "max_num_batched_tokens · good: TTFT ≤ 500 ms and TPOT ≤ 20 ms · red: fewer than 90 % are good"
        fig.text(0.5, 0.03, legend, ha="center")
        return Picture("chunk-budget.svg", inline_svg(fig, "chunk-budget", f"{title}. {MARK}"))


def _above(points: int = 5) -> dict[str, Any]:
    return {"xytext": (0, points), "textcoords": "offset points", "ha": "center", "fontsize": 8}


def _panels(count: int, title: str) -> tuple[Figure, list[Axes]]:
    fig = Figure(figsize=(11.4, 3.6))
    axes = fig.subplots(1, count)
    fig.subplots_adjust(left=0.06, right=0.985, bottom=0.24, top=0.82, wspace=0.3)
    fig.text(0.5, 0.955, title, color=LIMIT, weight="bold", ha="center", va="top")
    return fig, list(axes)


def pictures(results: Path) -> list[Picture]:
    """Both figures."""
    return [
        latency_throughput(rows(results, "latency-throughput")),
        chunk_budget(rows(results, "chunk-budget-model")),
    ]


def main() -> None:
    """Write both figures."""
    results, folder = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures(results):
        (folder / picture.name).write_text(picture.svg + "\n", encoding="utf-8")
        sys.stdout.write(f"{folder / picture.name}\n")


if __name__ == "__main__":
    main()
