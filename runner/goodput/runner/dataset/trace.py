"""Azure LLM inference traces: CSV with TIMESTAMP, ContextTokens, GeneratedTokens.

Timestamps are UTC with up to seven decimals (100 ns), such as ``2023-11-16 18:17:03.9799600``; the traces of 2024
add ``+00:00``. Format: github.com/Azure/AzurePublicDataset, AzureLLMInferenceDataset2023.md.
"""

from __future__ import annotations

import csv
import re

import numpy as np

from goodput.runner.dataset.rows import DatasetError, Trace

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:\+00:00|Z)?")
_MOST_TOKENS = 1 << 31


def parse_trace(data: bytes) -> Trace:
    """The requests of a file. One that asks for no token, or has no prompt, is counted and left out.

    Raises `DatasetError` with the line of what is not in that form, or goes back in time.
    """
    lines = csv.reader(data.decode("utf-8-sig", errors="replace").splitlines())
    header = next(lines, [])
    if missing := [name for name in COLUMNS if name not in header]:
        raise DatasetError("line 1", f"has no column {missing[0]}", f"write the header {','.join(COLUMNS)}")
    places = [header.index(name) for name in COLUMNS]
    times: list[str] = []
    prompts: list[int] = []
    outputs: list[int] = []
    unusable = 0
    for cells in lines:
        if not cells:
            continue
        place = f"line {lines.line_num}"
        if len(cells) != len(header):
            raise DatasetError(place, f"has {len(cells)} columns, not {len(header)}", "correct it there")
        time, prompt, output = (cells[at].strip() for at in places)
        found = _TIME.fullmatch(time)
        if not found:
            raise DatasetError(place, f"has TIMESTAMP {time!r}", "write it such as 2023-11-16 18:17:03.9799600")
        lengths = _tokens(prompt, "ContextTokens", place), _tokens(output, "GeneratedTokens", place)
        if 0 in lengths:
            unusable += 1
            continue
        if times and _normal(found[1]) < times[-1]:
            raise DatasetError(place, "is earlier than the line before", "sort the file by TIMESTAMP")
        times.append(_normal(found[1]))
        prompts.append(lengths[0])
        outputs.append(lengths[1])
    try:
        stamps = np.array(times, dtype="datetime64[ns]").astype(np.int64)
    except ValueError as error:
        raise DatasetError("the file", f"has a TIMESTAMP that is no time: {error}", "correct it there") from error
    return Trace(stamps - stamps[:1], tuple(prompts), tuple(outputs), unusable)


def _normal(time: str) -> str:
    """Texts of equal length, which sort as times do."""
    whole, _, fraction = time.replace(" ", "T").partition(".")
    return f"{whole}.{fraction:0<9}"


def _tokens(text: str, column: str, place: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) >= _MOST_TOKENS:
        raise DatasetError(place, f"has {column} {text!r}", "write a whole number of tokens")
    return int(text)
