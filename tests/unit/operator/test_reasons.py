"""One table of reasons: whatever a part can say is in it."""

from __future__ import annotations

from collections.abc import Iterator

from goodput.operator import reasons
from goodput.operator.reasons import REASONS
from goodput.runner import errors, validity
from goodput.runner.load import errors as load_errors
from goodput.runner.stop import RUNNER_STOPPED, TRIAL_DEADLINE


def _all(kind: type[errors.RunnerError]) -> Iterator[type[errors.RunnerError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _all(below)


def test_every_reason_of_the_runner_is_known() -> None:
    said = {kind.reason for kind in _all(errors.RunnerError) if isinstance(kind.__dict__.get("reason"), str)}
    assert load_errors.TargetError.reason in said, "the load client's errors are among them"
    said |= {name for name, _ in validity.RULES} | {RUNNER_STOPPED, TRIAL_DEADLINE}
    assert said - REASONS.keys() == set()


def test_every_reason_says_what_it_is_and_what_to_do() -> None:
    assert all(reason.text for reason in REASONS.values())
    assert [name for name, reason in REASONS.items() if not reason.fix] == ["AllMeasured"]


def test_only_deterministic_failures_say_something_about_memory() -> None:
    assert {reason.kind for reason in REASONS.values() if reason.memory} == {"deterministic"}


def test_a_reason_that_is_not_in_the_table_may_pass() -> None:
    assert reasons.kind("NeverHeardOf") == "transient"
    assert reasons.text("NeverHeardOf") == ""
