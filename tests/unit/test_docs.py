"""Documents that list others list all of them."""

from __future__ import annotations

from pathlib import Path

DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"


def test_every_decision_is_in_the_index() -> None:
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    missing = [path.name for path in sorted(DECISIONS.glob("0*.md")) if f"]({path.name})" not in index]
    assert not missing
