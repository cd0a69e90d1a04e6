"""ShareGPT's JSON: a list of ``{"conversations": [{"from": "human", "value": …}, {"from": "gpt", "value": …}, …]}``.

The first human turn is the prompt, the length of the answer to it the output length. A conversation without both
is counted and left out, as other load generators do (fewer than two turns).
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from goodput.runner.dataset.rows import DatasetError, Row, Rows

_HUMAN = ("human", "user")
_ANSWER = ("gpt", "assistant", "chatgpt", "bing", "bard")
_SHAPE = 'write {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}'


def parse_sharegpt(data: bytes) -> Rows:
    """The conversations of a file. Raises `DatasetError` for what is not in that form."""
    try:
        document = json.loads(data)
    except ValueError as error:
        raise DatasetError("the file", f"is no JSON: {error}", "correct it there") from error
    if not isinstance(document, list):
        raise DatasetError("the file", "is no list of conversations", "put them into one JSON list")
    found = [_row(entry, f"entry {number}") for number, entry in enumerate(document, 1)]
    rows = tuple(row for row in found if row is not None)
    return Rows(rows, len(found) - len(rows))


def _row(entry: Any, place: str) -> Row | None:
    turns = entry.get("conversations") if isinstance(entry, dict) else None
    if not isinstance(turns, list):
        raise DatasetError(place, "has no list of conversations", _SHAPE)
    spoken = [_turn(turn, f"{place}, turn {number}") for number, turn in enumerate(turns, 1)]
    for (who, text), (next_who, answer) in pairwise(spoken):
        if who in _HUMAN:
            usable = next_who in _ANSWER and text.strip() and answer.strip()
            return Row(answer, text=text) if usable else None
    return None


def _turn(turn: Any, place: str) -> tuple[str, str]:
    who, text = (turn.get("from"), turn.get("value")) if isinstance(turn, dict) else (None, None)
    if not isinstance(who, str) or not isinstance(text, str):
        raise DatasetError(place, "has no from and value that are texts", _SHAPE)
    return who, text
