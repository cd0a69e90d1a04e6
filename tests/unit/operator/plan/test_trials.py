"""The life of a trial, step by step, and how it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from goodput.operator import actions as do
from goodput.operator.observed import Canary, Failure, Runner, Server
from goodput.operator.plan.limits import CAPACITY_TIMEOUT_SECONDS, RUNNER_START_TIMEOUT_SECONDS
from goodput.runner.contract import RunnerStatus


def note(actions: tuple[do.Action, ...]) -> do.Note:
    return next(action for action in actions if isinstance(action, do.Note))


def kinds(actions: tuple[do.Action, ...]) -> set[str]:
    return {type(action).__name__ for action in actions}


def test_nothing_is_started_before_the_store_was_checked(book: Any) -> None:
    book.canary = None
    assert book.actions() == (do.StartCanary(),)
    assert book.plan().status["phase"] == "Pending"
    book.canary = Canary("running", book.now)
    assert book.actions() == ()
    assert book.plan().status["phase"] == "Preflight"


def test_a_refused_preflight_ends_the_sweep(book: Any) -> None:
    book.canary = Canary("failed", book.now, Failure("UploadDenied", "403"))
    found = book.turn()
    assert (found.actions, found.status["phase"]) == ((), "Failed")
    assert book.condition("PreflightPassed")["reason"] == "UploadDenied"


def test_the_first_trial_is_remembered_before_its_server_starts(book: Any) -> None:
    first = book.id(0)
    assert book.actions() == (do.Remember(first, 1),)
    book.add(first)
    assert book.actions() == (do.StartServer(first),)


def test_a_ready_server_gets_its_runner_once(book: Any) -> None:
    book.ready(book.id(0))
    assert book.actions() == (do.StartRunner(book.id(0)),)
    book.measuring(book.id(0))
    assert book.actions() == ()


def test_the_end_is_noted_before_anything_is_deleted(book: Any) -> None:
    first = book.id(0)
    book.measuring(first, state="finished", outcome=book.outcome())
    assert book.actions() == (do.Note(first, outcome=book.outcome(), ended=book.now),)
    book.trials[first] = replace(
        book.trials[first], memory=replace(book.trials[first].memory, outcome=book.outcome(), ended=book.now)
    )
    assert book.actions() == (do.SaveLogs(first),)
    book.trials[first] = replace(book.trials[first], memory=replace(book.trials[first].memory, logs="saved"))
    assert book.actions() == (do.StopServer(first), do.DropRunner(first))


def test_the_next_server_waits_until_nothing_of_the_last_is_left(book: Any) -> None:
    first = book.id(0)
    book.over(first, book.outcome(), server_gone=None)
    book.trials[first] = replace(book.trials[first], server=Server("stopping", book.now - 60))
    assert book.actions() == ()
    book.trials[first] = replace(book.trials[first], server=None)
    assert book.actions() == (do.Note(first, server_gone=book.now),)
    book.done(first)
    assert [action.trial for action in book.actions() if isinstance(action, do.Remember)] == [book.id(1)]


def test_the_next_block_does_not_wait_for_the_pod_of_a_runner_that_has_ended(book: Any) -> None:
    book.finish_block("0")
    last = book.id(2)
    book.trials[last] = replace(book.trials[last], runner=Runner("stopping", book.now - 1, outcome=book.outcome()))
    actions = book.actions()
    assert [action.trial for action in actions if isinstance(action, do.Remember)] == [book.id(0, "1")]
    assert not any(isinstance(action, do.StopRunner | do.DropRunner) for action in actions), "it is going already"
    assert book.plan().status["phase"] == "Running"


def test_as_many_servers_as_parallelism_allows(book: Any) -> None:
    book.spec("plan", parallelism=2)
    assert book.actions() == (do.Remember(book.id(0), 1), do.Remember(book.id(1), 2))
    book.measuring(book.id(0))
    book.add(book.id(1))
    book.add(book.id(2))
    assert book.actions() == (do.StartServer(book.id(1)),), "the third is remembered, but has no slot"


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ({"state": "ended"}, "ServerGone"),
        ({"state": "ended", "failure": Failure("CudaOutOfMemory")}, "CudaOutOfMemory"),
        ({"failure": Failure("Evicted")}, "Evicted"),
        ({"state": "stopping"}, "ServerGone"),
    ],
)
def test_a_server_that_fails_ends_its_trial_with_the_cause(book: Any, server: dict[str, Any], reason: str) -> None:
    first = book.id(0)
    book.measuring(first)
    book.trials[first] = replace(book.trials[first], server=replace(book.trials[first].server, **server))
    found = note(book.actions())
    assert found.failure is not None
    assert (found.failure.reason, found.ended) == (reason, book.now)


def test_a_server_that_vanished_ends_its_trial(book: Any) -> None:
    first = book.id(0)
    book.ready(first)
    book.trials[first] = replace(book.trials[first], server=None)
    found = note(book.actions())
    assert found.failure is not None
    assert found.failure.reason == "ServerGone"


def test_a_runner_is_stopped_before_its_server(book: Any) -> None:
    first = book.id(0)
    book.measuring(first)
    book.trials[first] = replace(
        book.trials[first], memory=replace(book.trials[first].memory, ended=book.now - 1, interrupted=True)
    )
    assert book.actions() == (do.StopRunner(first),)
    book.trials[first] = replace(book.trials[first], runner=Runner("stopping", book.now - 30))
    assert book.actions() == ()


def test_a_cause_that_is_seen_late_is_noted(book: Any) -> None:
    first = book.id(0)
    book.measuring(first, state="finished", outcome=book.outcome(second="ServerGone"))
    memory = replace(book.trials[first].memory, outcome=book.outcome(second="ServerGone"), ended=book.now - 1)
    book.trials[first] = replace(book.trials[first], memory=memory)
    assert book.actions() == (), "the server is kept for a moment, to learn why"
    failed = replace(book.trials[first].server, state="ended", failure=Failure("HostOutOfMemory"))
    book.trials[first] = replace(book.trials[first], server=failed)
    found = note(book.actions())
    assert found.failure == Failure("HostOutOfMemory")
    assert found.ended is None


def test_a_server_may_go_while_the_runner_waits_for_the_store(book: Any) -> None:
    first = book.id(0)
    waits = RunnerStatus(step="uploading", measuring=False, upload_error="403 Forbidden")
    book.measuring(first, status=waits)
    assert book.actions() == (do.Note(first, released=book.now),)
    assert book.condition("ResultsCommitted")["reason"] == "UploadDenied"
    book.trials[first] = replace(book.trials[first], memory=replace(book.trials[first].memory, released=book.now - 1))
    assert book.actions() == (do.SaveLogs(first, final=False),)
    memory = replace(book.trials[first].memory, logs="server", server_gone=book.now - 1)
    book.trials[first] = replace(book.trials[first], memory=memory, server=None)
    assert book.actions() == (do.Remember(book.id(1), 2),), "its slot is free"


@pytest.mark.parametrize(
    ("server", "seconds", "reason"),
    [
        ({"state": "starting"}, 1200, "StartupTimeout"),
        ({"state": "pending", "waiting": Failure("QuotaExceeded")}, CAPACITY_TIMEOUT_SECONDS, "QuotaExceeded"),
    ],
)
def test_waits_for_a_server_end(book: Any, server: dict[str, Any], seconds: float, reason: str) -> None:
    first = book.id(0)
    book.add(first)
    book.trials[first] = replace(book.trials[first], server=Server(since=book.now, **server))
    begun = book.now
    book.now = begun + seconds - 1
    assert book.actions() == ()
    assert book.plan().next_look_seconds <= 1
    book.now = begun + seconds
    found = note(book.actions())
    assert found.failure is not None
    assert found.failure.reason == reason


def test_time_in_the_queue_is_no_start_time(book: Any) -> None:
    first = book.id(0)
    book.add(first)
    since, scheduled = book.now - 50_000, book.now - 10
    waited = Server("pending", since, scheduled=scheduled)
    book.trials[first] = replace(book.trials[first], server=waited)
    assert book.actions() == ()


def test_a_runner_that_does_not_start_ends_its_trial(book: Any) -> None:
    book.measuring(book.id(0), state="pending", since=book.now - RUNNER_START_TIMEOUT_SECONDS)
    found = note(book.actions())
    assert found.failure is not None
    assert found.failure.reason == "RunnerFailed"


def test_logs_that_cannot_be_saved_do_not_hold_the_gpu(book: Any) -> None:
    first = book.id(0)
    book.ready(first)
    memory = replace(book.trials[first].memory, ended=book.now - 601, failure=Failure("EngineDead"))
    book.trials[first] = replace(book.trials[first], memory=memory)
    assert book.actions() == (do.StopServer(first),)


def test_queued_while_every_server_waits(book: Any) -> None:
    first = book.id(0)
    book.add(first)
    waits = Server("pending", book.now - 5, waiting=Failure("WaitingForCapacity", "0/1 nodes: Insufficient gpu"))
    book.trials[first] = replace(book.trials[first], server=waits)
    assert book.plan().status["phase"] == "Queued"
    assert book.plan().status["current"] == [{"config": first.config, "block": "0", "attempt": 1, "step": "queued"}]
