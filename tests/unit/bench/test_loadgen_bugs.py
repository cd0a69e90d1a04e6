"""The table of bugs of load generators: every row says what holds it, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROWS = re.findall(
    r"^\| (\d+) \| (.+?) \| (.+?) \| (.+) \|$", (ROOT / "docs/loadgen-bugs.md").read_text(), flags=re.MULTILINE
)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_there_are_fifty_five_and_each_has_a_source_and_an_answer() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, 56))
    for number, _, source, held in ROWS:
        assert "https://github.com/" in source or re.fullmatch(r"[\w-]+#\d+", source), number
        assert TEST.search(held) or held.startswith("cannot occur, because"), number


@pytest.mark.parametrize(("number", "held"), [(row[0], row[3]) for row in ROWS])
def test_the_tests_exist(number: str, held: str) -> None:
    for path, name in TEST.findall(held):
        names = [node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)]
        assert name in names, f"row {number}: {path} has no {name}"
