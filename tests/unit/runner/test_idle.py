from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from goodput.runner.errors import NotIdleError, ServerGoneError, StoppedError
from goodput.runner.idle import wait_idle
from goodput.runner.snapshot import Snapshot
from goodput.runner.stop import Stop


def scrapes(*states: Snapshot | Exception) -> Callable[[], Snapshot]:
    """Gives one state after the other, the last one for ever."""

    def endless() -> Iterator[Snapshot | Exception]:
        yield from states
        while True:
            yield states[-1]

    stream = endless()

    def read() -> Snapshot:
        state = next(stream)
        if isinstance(state, Exception):
            raise state
        return state

    return read


def at(stamp: float, running: float, waiting: float, tokens: float = 0) -> Snapshot:
    return Snapshot(stamp=stamp, running=running, waiting=waiting, generation_tokens=tokens)


def test_idle_needs_two_equal_quiet_scrapes() -> None:
    read = scrapes(
        at(1, 2, 1), at(2, 0, 1), at(3, 0, 0, 5), at(4, 0, 0, 6), at(5, 1, 0, 6), at(6, 0, 0, 7), at(7, 0, 0, 7)
    )
    assert wait_idle(read, Stop(), gap_seconds=0).stamp == 7


def test_a_server_that_stays_busy_is_not_idle_at_the_deadline() -> None:
    with pytest.raises(NotIdleError, match="running 3, waiting 1"):
        wait_idle(scrapes(at(1, 3, 1)), Stop(), gap_seconds=0, deadline_seconds=0)


def test_without_metrics_the_first_look_is_enough() -> None:
    assert wait_idle(scrapes(Snapshot(stamp=3)), Stop(), gap_seconds=0).stamp == 3


def test_a_server_that_has_told_before_is_asked_again() -> None:
    page = Snapshot(stamp=1, problem="NoServerMetrics: GET /metrics: text/html, not Prometheus text")
    quiet = at(2, 0, 0), at(3, 0, 0)
    assert wait_idle(scrapes(quiet[0], page, *quiet), Stop(), told=True, gap_seconds=0).stamp == 3
    with pytest.raises(ServerGoneError, match="text/html"):
        wait_idle(scrapes(page), Stop(), told=True, gap_seconds=0, deadline_seconds=0)


def test_a_slow_answer_is_waited_for_and_a_dead_server_is_not() -> None:
    slow = ServerGoneError("ReadTimeout", slow=True)
    assert wait_idle(scrapes(slow, at(1, 0, 0), slow, at(2, 0, 0), at(3, 0, 0)), Stop(), gap_seconds=0).stamp == 3
    with pytest.raises(ServerGoneError):
        wait_idle(scrapes(at(1, 0, 0), ServerGoneError("ConnectError")), Stop(), gap_seconds=0)


def test_asked_to_stop_it_stops() -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(StoppedError):
        wait_idle(scrapes(at(1, 1, 1)), stop, gap_seconds=0)
