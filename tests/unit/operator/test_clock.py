"""A sweep's clock: unsuspended time, kept in its status."""

from __future__ import annotations

import pytest

from goodput.operator.clock import Clock, parse_timestamp, timestamp

NOW = 1_800_000_000.0


def test_a_timestamp_is_read_back() -> None:
    assert timestamp(NOW) == "2027-01-15T08:00:00Z"
    assert parse_timestamp(timestamp(NOW)) == NOW


@pytest.mark.parametrize("text", [None, 7, "yesterday", ""])
def test_what_is_no_time_is_none(text: object) -> None:
    assert parse_timestamp(text) is None


def test_suspended_time_is_left_out_over_many_suspensions() -> None:
    clock = Clock(started=NOW)
    for number in range(3):
        begun = NOW + 100 + number * 60
        clock = clock.turned(suspend=True, now=begun)
        assert clock.turned(suspend=True, now=begun + 10) == clock
        assert clock.active_seconds(begun + 49) == 100 + number * 10
        clock = clock.turned(suspend=False, now=begun + 50)
    assert clock.active_seconds(NOW + 300) == 150


def test_the_status_keeps_it() -> None:
    clock = Clock(started=NOW, suspended=NOW + 5, suspended_seconds=60)
    assert Clock.read(clock.write(), now=NOW + 99) == clock
    assert Clock.read({}, now=NOW) == Clock(started=NOW)
