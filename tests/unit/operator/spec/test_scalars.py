from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.operator.spec.scalars import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("20m", 1200), ("1h30m", 5400), ("1.5s", 1.5), ("1m500ms", 60.5), ("0s", 0), ("90s", 90)],
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "ms", "-1s", "1 s", "1d", "1s ", "1e3s", "9" * 40 + "s", "100000h", "s5"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|longer"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "500ms"), (60.0, "1m"), (5400.0, "1h30m"), (61.5, "1m1.5s"), (0.0, "0s"), (3600.0, "1h")],
)
def test_the_shortest_spelling(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(min_value=0, max_value=10**10))
def test_a_written_duration_reads_back(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse_duration(format_duration(seconds)) == seconds
