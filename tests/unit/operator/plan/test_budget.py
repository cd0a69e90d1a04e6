"""Suspend, cancel, and the ends that a budget sets."""

from __future__ import annotations

from typing import Any

import pytest

from goodput.operator import actions as do
from goodput.operator.observed import Analysis, Canary


def remembered(book: Any) -> list[Any]:
    return [action.trial for action in book.actions() if isinstance(action, do.Remember)]


def test_suspend_interrupts_and_resume_goes_on(book: Any) -> None:
    first = book.id(0)
    book.measuring(first)
    book.spec(suspend=True)
    (found,) = book.actions()
    assert isinstance(found, do.Note)
    assert found.interrupted is True
    assert found.failure is not None
    assert found.failure.reason == "Suspended"
    assert book.plan().status["phase"] == "Running"
    book.over(first, book.outcome(first="RunnerStopped", second="RunnerStopped"), failure="Suspended", interrupted=True)
    assert book.plan().status["phase"] == "Suspended"
    assert remembered(book) == []
    book.spec(suspend=False)
    assert remembered(book) == [book.id(0, attempt=2)]


def test_a_suspended_sweep_does_not_begin(book: Any) -> None:
    book.canary = None
    book.spec(suspend=True)
    found = book.plan()
    assert (found.actions, found.status["phase"]) == ((), "Suspended")


def test_suspended_time_does_not_count_for_the_deadline(book: Any) -> None:
    book.spec("budget", deadline_seconds=1000.0)
    book.turn()
    book.now += 900
    book.spec(suspend=True)
    book.turn()
    book.now += 10_000
    book.turn()
    book.spec(suspend=False)
    assert remembered(book) == [book.id(0)]
    book.turn()
    assert book.status["suspendedSeconds"] == 10_000
    book.now += 99
    assert remembered(book) == [book.id(0)]
    book.now += 2
    assert remembered(book) == []


def test_a_deadline_lets_the_running_measurement_finish(book: Any) -> None:
    book.spec("budget", deadline_seconds=1000.0)
    book.turn()
    book.now += 1000
    book.measuring(book.id(0))
    assert book.actions() == ()
    book.trials.clear()
    book.ready(book.id(0))
    (found,) = book.actions()
    assert isinstance(found, do.Note), "a server without a runner is not waited for"
    assert found.failure is not None
    assert found.failure.reason == "BudgetDeadline"


@pytest.mark.parametrize(
    ("budget", "reason"),
    [({"max_trials": 2}, "BudgetMaxTrials"), ({"max_gpu_hours": 70 / 3600}, "BudgetMaxGpuHours")],
)
def test_a_budget_that_is_used_up_ends_the_sweep_in_part(book: Any, budget: dict[str, Any], reason: str) -> None:
    book.spec("budget", **budget)
    book.done(book.id(0))
    assert remembered(book) == [book.id(1)]
    book.done(book.id(1))
    (final,) = book.actions()
    assert isinstance(final, do.StartAnalysis)
    assert final.block is None
    assert {(cell.state, cell.reason) for cell in final.states.cells} == {("not_run", reason)}
    assert len(final.states.cells) == 8
    book.analyses[1] = Analysis("succeeded", book.now, None)
    status = book.plan().status
    assert status["phase"] == "PartiallyFailed"
    assert book.condition("Complete")["reason"] == reason
    assert status["gpuHoursUsed"] == round(72 / 3600, 2)


def test_raising_a_budget_lets_it_go_on(book: Any) -> None:
    book.spec("budget", max_trials=1)
    book.done(book.id(0))
    book.spec("budget", max_trials=2)
    assert remembered(book) == [book.id(1)]


def test_too_many_failed_configs_fail_the_sweep(book: Any) -> None:
    book.spec("budget", max_failed_configs=0)
    book.done(book.id(0))
    book.over(book.id(1), failure="InvalidServerArgs")
    assert remembered(book) == []
    book.analyses[1] = Analysis("succeeded", book.now, None)
    assert book.plan().status["phase"] == "Failed"
    assert book.condition("Failed")["reason"] == "MaxFailedConfigs"


def test_cancel_ends_it_after_a_last_analysis(book: Any) -> None:
    book.done(book.id(0))
    book.measuring(book.id(1))
    book.spec(cancel=True)
    (found,) = book.actions()
    assert isinstance(found, do.Note)
    assert found.interrupted is True
    book.over(book.id(1), failure="Cancelled", interrupted=True)
    (final,) = book.actions()
    assert isinstance(final, do.StartAnalysis)
    assert {(cell.state, cell.reason) for cell in final.states.cells} == {("not_run", "Cancelled")}
    book.analyses[1] = Analysis("succeeded", book.now, None)
    assert book.plan().status["phase"] == "Cancelled"
    assert book.condition("Failed")["status"] == "True"


def test_a_sweep_cancelled_before_it_began_needs_no_analysis(book: Any) -> None:
    book.canary = None
    book.spec(cancel=True)
    found = book.plan()
    assert (found.actions, found.status["phase"]) == ((), "Cancelled")


def test_a_terminal_sweep_is_cleaned_up_after_its_time(book: Any) -> None:
    book.canary = Canary("succeeded", book.now)
    book.spec("retention", ttl_after_finished_seconds=600.0)
    book.finish_block("0")
    book.finish_block("1")
    book.analyses[1] = Analysis("succeeded", book.now, None)
    assert do.CleanUp() not in book.turn().actions, "the status is written first"
    found = book.turn()
    assert (found.actions, found.next_look_seconds) == ((), 600)
    book.now += 600
    assert book.actions() == (do.CleanUp(),)
    book.canary, book.trials, book.analyses = None, {}, {}
    found = book.plan()
    assert (found.actions, found.next_look_seconds) == ((), None)
    assert found.status["phase"] == "Succeeded"
