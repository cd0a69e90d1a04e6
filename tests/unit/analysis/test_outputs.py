from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from goodput.analysis.cells import Cell
from goodput.analysis.outputs import equality
from goodput.analysis.schema.cell import Outputs
from goodput.analysis.schema.planned import CellKey


def cell(config: str, block: str, *continuations: tuple[int, ...] | str, prompts: str = "p") -> Cell:
    outputs = Outputs(prompts_sha256=prompts, continuations=continuations) if continuations else None
    document = SimpleNamespace(key=CellKey(config=config, load="l", block=block), outputs=outputs)
    return cast("Cell", SimpleNamespace(document=cast("Any", document)))


def test_shares_against_the_reference_in_the_same_block() -> None:
    cells = [
        *(cell("ref", "0", (1, 2, 3), (4, 5, 6)), cell("ref", "1", (1, 2, 3), (4, 5, 6))),
        *(cell("fp8", "0", (1, 2, 3), (4, 9, 6)), cell("fp8", "1", (1, 7, 3), (4, 5, 6))),
        cell("same", "0", (1, 2, 3), (4, 5, 6)),
    ]
    found = equality(cells, "ref")
    assert (found["fp8"].compared, found["fp8"].identical, found["fp8"].ratio) == (4, 2, 0.5)
    assert found["fp8"].same_tokens_mean == pytest.approx((3 + 1 + 1 + 3) / 4)
    assert (found["same"].compared, found["same"].ratio) == (2, 1.0)


def test_the_reference_is_compared_with_its_own_first_start() -> None:
    cells = [cell("ref", "0", (1, 2)), cell("ref", "1", (1, 3)), cell("ref", "2", (1, 2))]
    found = equality(cells, "ref")["ref"]
    assert (found.compared, found.identical) == (2, 1)
    assert equality([cell("ref", "0", (1, 2))], "ref") == {}


def test_texts_are_compared_where_there_are_no_ids() -> None:
    found = equality([cell("ref", "0", "one two"), cell("b", "0", "one too")], "ref")["b"]
    assert (found.identical, found.same_tokens_mean) == (0, 5)


def test_two_empty_answers_are_not_the_same_answer() -> None:
    cells = [cell("ref", "0", "", "one", ""), cell("b", "0", "", "one", "two"), cell("mute", "0", "", "", "")]
    found = equality(cells, "ref")
    assert (found["b"].compared, found["b"].identical) == (2, 1)
    assert (found["mute"].compared, found["mute"].identical) == (1, 0)
    assert equality([cell("ref", "0", "", ""), cell("mute", "0", "", "")], "ref") == {}


def test_ids_are_not_compared_with_text() -> None:
    cells = [cell("ref", "0", (1, 2), (3, 4)), cell("old", "0", "one two", "three"), cell("half", "0", (1, 2), "three")]
    found = equality(cells, "ref")
    assert "old" not in found
    assert (found["half"].compared, found["half"].ratio) == (1, 1.0)


def test_a_trial_counts_once_whatever_its_cells() -> None:
    found = equality([cell("ref", "0", (1,)), cell("ref", "0", (1,)), *[cell("b", "0", (1,))] * 3], "ref")
    assert found["b"].compared == 1


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [cell("ref", "0"), cell("b", "0")],
        [cell("b", "0", (1,))],
        [cell("ref", "0", (1,)), cell("b", "0", (1,), prompts="other")],
    ],
)
def test_what_cannot_be_compared_is_not_there(cells: list[Cell]) -> None:
    assert "b" not in equality(cells, "ref")
