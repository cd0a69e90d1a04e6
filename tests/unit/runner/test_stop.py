from __future__ import annotations

import time

import pytest

from goodput.runner.errors import StoppedError
from goodput.runner.stop import RUNNER_STOPPED, TRIAL_DEADLINE, Stop


def test_nothing_to_stop_for() -> None:
    stop = Stop(deadline=time.monotonic() + 1000)
    assert stop.reason is None
    assert not stop.wait(0)
    stop.check()


def test_a_signal_wakes_every_wait_and_its_reason_stays() -> None:
    stop = Stop()
    stop.set()
    stop.set("Later")
    assert stop.wait(1000)
    assert stop.reason == RUNNER_STOPPED
    with pytest.raises(StoppedError) as caught:
        stop.pause(1000)
    assert caught.value.reason == RUNNER_STOPPED


def test_the_deadline_is_a_reason_but_no_signal() -> None:
    stop = Stop(deadline=time.monotonic())
    assert stop.wait(1000)
    assert stop.reason == TRIAL_DEADLINE
    assert not stop.signalled
    with pytest.raises(StoppedError):
        stop.check()


def test_a_signal_after_the_deadline_is_a_signal() -> None:
    stop = Stop(deadline=time.monotonic())
    stop.set()
    assert stop.signalled
    assert stop.reason == RUNNER_STOPPED
