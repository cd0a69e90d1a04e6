"""The goodput table for a terminal. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from goodput.analysis.failure_words import state
from goodput.analysis.formats import number, per_cent
from goodput.analysis.goodput_table import goodput_table
from goodput.analysis.result import AnalysisResult
from goodput.analysis.tables import Row
from goodput.analysis.words import explain, headline

HEADER = ("load", "blocks", "goodput/s", "95 %", "attained", "TTFT p95", "TPOT p95", "tokens/s", "state")
LEFT = {"engine", "config", "load", "state"}
SYNTHETIC = "SYNTHETIC: from a simulated engine, not measured on a real server"
EXTERNAL = "external server: blocks are repetitions on it, not server starts; intervals do not cover another start"


def format_table(result: AnalysisResult) -> str:
    """Title, one line per config and load point, leader and verdict. Marked where the evidence is synthetic.

    The engine is a column of its own where there are several.
    ``*``: the load point that supplies the config's score. TTFT of open loop is from the planned send time;
    ``tokens/s`` are output tokens delivered in the window.
    """
    rows = goodput_table(result).to_pylist()
    names = ("  engine", "config") if result.many_engines else ("  config",)
    lines = [(*names, *HEADER), *(_line(result, row) for row in rows)]
    title = f"{result.spec.namespace}/{result.spec.name}  {result.spec.model}"
    mark = [
        *([SYNTHETIC] if result.synthetic else []),
        *([f"VIRTUAL TIME: {result.simulated}"] if result.simulated else []),
        *([EXTERNAL] if result.external else []),
    ]
    return "\n".join([title, *mark, "", *aligned(lines), "", headline(result), explain(result)])


def _line(result: AnalysisResult, row: Row) -> tuple[str, ...]:
    ttft = "ttft" if row["arrival"] == "closed" else "scheduled_ttft"
    low, high = row["goodput_low_per_second"], row["goodput_high_per_second"]
    names = result.engine_and_flags(row["config"]) if result.many_engines else (result.name(row["config"]),)
    return (
        f"{'*' if row['chosen'] else ' '} {names[0]}",
        *names[1:],
        result.loads[row["load"]].label,
        str(row["blocks"]),
        number(row["goodput_per_second"]),
        "" if low is None else f"{number(low)}..{number(high)}",
        per_cent(row["attainment_ratio"]),
        _milliseconds(row, f"{ttft}_p95"),
        _milliseconds(row, "tpot_p95"),
        number(row["output_tokens_per_second"]),
        state(row),
    )


def _milliseconds(row: Row, name: str) -> str:
    value = row[f"{name}_seconds"]
    return "–" if value is None else f"{number(value * 1000)} ms"


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """The lines as columns; the first is the header, whose names say which columns are numbers."""
    header = lines[0]
    widths = [max(_width(line[column]) for line in lines) for column in range(len(header))]
    right = [name.strip() not in LEFT for name in header]
    return ["  ".join(map(_pad, line, widths, right)).rstrip() for line in lines]


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
