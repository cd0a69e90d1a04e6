from __future__ import annotations

from pathlib import Path

from goodput.operator.spec import reference


def test_the_reference_is_up_to_date() -> None:
    assert (Path(__file__).parents[4] / "docs/spec.md").read_text() == reference.text()
