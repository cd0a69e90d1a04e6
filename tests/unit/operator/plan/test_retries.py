"""What becomes of a config after failures: retried, failed for good, pruned, given up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from goodput.analysis.schema.planned import Config
from goodput.operator import actions as do
from goodput.operator import reasons
from goodput.operator.observed import Memory, Runner, Trial
from goodput.operator.plan.attempts import judge
from goodput.operator.plan.limits import MAX_DISRUPTIONS
from goodput.operator.plan.pruning import MORE_MEMORY, needs_more
from goodput.runner.contract import OpenCell, Outcome


def remembered(book: Any) -> list[Any]:
    return [action.trial for action in book.actions() if isinstance(action, do.Remember)]


def final_cells(book: Any) -> list[Any]:
    start = next(action for action in book.actions() if isinstance(action, do.StartAnalysis))
    assert start.block is None
    return list(start.states.cells)


@pytest.mark.parametrize("reason", ["StartupTimeout", "EngineDead", "RunnerFailed", "SomethingNew"])
def test_a_transient_failure_uses_up_retries(book: Any, reason: str) -> None:
    for attempt in (1, 2):
        book.over(book.id(0, attempt=attempt), failure=reason)
        assert remembered(book) == [book.id(0, attempt=attempt + 1)]
    book.over(book.id(0, attempt=3), failure=reason)
    assert remembered(book) == [book.id(1)], "plan.retries is 2"


def test_a_void_cell_gets_another_attempt(book: Any) -> None:
    book.over(book.id(0), book.outcome(second="ScheduleLag"))
    assert remembered(book) == [book.id(0, attempt=2)]


def test_a_lost_message_gets_another_attempt(book: Any) -> None:
    book.over(book.id(0))
    assert remembered(book) == [book.id(0, attempt=2)]


@pytest.mark.parametrize("state", ["finished", "stopping"])
def test_an_outcome_that_comes_late_is_noted_before_another_attempt(book: Any, state: Any) -> None:
    first = book.id(0)
    book.over(first)
    runner = Runner(state, book.now - 30, outcome=book.outcome())
    book.trials[first] = replace(book.trials[first], runner=runner)
    assert do.Note(first, outcome=book.outcome()) in book.actions()
    assert remembered(book) == [book.id(1)], "no second attempt: the first may have measured everything"
    memory = replace(book.trials[first].memory, outcome=book.outcome())
    book.trials[first] = replace(book.trials[first], memory=memory)
    assert remembered(book) == [book.id(1)]


@pytest.mark.parametrize("reason", ["InvalidServerArgs", "CudaOutOfMemory", "ServerMismatch"])
def test_a_deterministic_failure_fails_the_config_in_all_blocks(book: Any, reason: str) -> None:
    failed = book.id(1)
    book.done(book.id(0))
    book.over(failed, failure=reason)
    book.done(book.id(2))
    configs = {trial.config for trial in remembered(book)}
    assert failed.config not in configs
    for number in range(3):
        if book.id(number, "1").config != failed.config:
            book.done(book.id(number, "1"))
    cells = final_cells(book)
    assert {(cell.config, cell.state, cell.reason) for cell in cells} == {(failed.config, "failed", reason)}
    assert len(cells) == 4, "two loads in two blocks"


def test_a_mismatch_that_the_runner_found_fails_the_config(book: Any) -> None:
    book.over(book.id(0), book.outcome(first="ServerMismatch", second="ServerMismatch"))
    assert remembered(book) == [book.id(1)]


def test_disruptions_are_not_counted_until_there_are_too_many(book: Any) -> None:
    for attempt in range(1, MAX_DISRUPTIONS):
        book.over(book.id(0, attempt=attempt), failure="Evicted")
    assert remembered(book) == [book.id(0, attempt=MAX_DISRUPTIONS)]
    book.over(book.id(0, attempt=MAX_DISRUPTIONS), failure="Preempted")
    assert remembered(book) == [book.id(1)]


def test_interruptions_count_for_neither(book: Any) -> None:
    for attempt in range(1, 30):
        book.over(book.id(0, attempt=attempt), failure="Suspended", interrupted=True)
    assert remembered(book) == [book.id(0, attempt=30)]


def test_an_outcome_that_is_done_beats_every_failure(book: Any) -> None:
    book.over(book.id(0), book.outcome(), failure="Evicted")
    assert remembered(book) == [book.id(1)]


def test_an_image_that_cannot_be_pulled_fails_all_its_configs(book: Any) -> None:
    book.over(book.id(0), failure="ImagePullFailed")
    found = book.plan()
    assert not any(isinstance(action, do.Remember) for action in found.actions)
    assert found.status["counts"]["failed"] == 12
    assert found.status["counts"]["failedConfigs"] == 3


def test_out_of_memory_prunes_what_needs_more(book: Any) -> None:
    smallest = book.config(1024)
    number = book.sweep.order("0").index(smallest)
    for other in range(number):
        book.done(book.id(other))
    book.over(book.id(number), failure="CudaOutOfMemory")
    measured = {book.id(other).config for other in range(number)}
    found = book.plan()
    pruned = {config.id for config in book.sweep.configs} - measured - {smallest}
    assert found.status["counts"]["pruned"] == 4 * len(pruned), "what was measured has enough memory"
    assert {action.trial.config for action in found.actions if isinstance(action, do.Remember)} <= measured


def config(**flags: str) -> Config:
    return Config(engine="vllm", kind="vllm", flags=flags)


@pytest.mark.parametrize(
    ("kind", "than", "other", "more"),
    [
        ("oom", {"max_num_seqs": "64"}, {"max_num_seqs": "128"}, True),
        ("oom", {"max_num_seqs": "64"}, {"max_num_seqs": "32"}, False),
        ("oom", {"gpu_memory_utilization": "0.8"}, {"gpu_memory_utilization": "0.9"}, True),
        ("kv", {"gpu_memory_utilization": "0.9"}, {"gpu_memory_utilization": "0.8"}, True),
        ("kv", {"gpu_memory_utilization": "0.8"}, {"gpu_memory_utilization": "0.9"}, False),
        ("kv", {"max_num_seqs": "64"}, {"max_num_seqs": "128"}, False),
        ("oom", {"max_num_seqs": "64", "block_size": "16"}, {"max_num_seqs": "128", "block_size": "32"}, False),
        ("oom", {"max_model_len": "auto"}, {"max_model_len": "4096"}, False),
        ("oom", {"max_num_seqs": "64"}, {"max_num_seqs": "64"}, False),
        ("oom", {"max_num_seqs": "64"}, {"max_num_seqs": "128", "seed": "1"}, False),
    ],
)
def test_directions_of_memory(kind: str, than: dict[str, str], other: dict[str, str], more: bool) -> None:
    assert needs_more(config(**other), config(**than), MORE_MEMORY[kind]) is more


def test_a_void_whose_cause_the_driver_knows_is_a_failure(book: Any) -> None:
    book.spec("plan", retries=0)
    book.over(book.id(0), book.outcome(second="ServerGone"), failure="EngineDead")
    for number in (1, 2):
        book.done(book.id(number))
    book.finish_block("1")
    (cell,) = final_cells(book)
    assert (cell.load, cell.state, cell.reason) == (book.sweep.load_ids[1], "failed", "EngineDead")


def test_a_void_that_stays_is_void(book: Any) -> None:
    book.spec("plan", retries=0)
    book.over(book.id(0), book.outcome(second="NotIdle"))
    for number in (1, 2):
        book.done(book.id(number))
    book.finish_block("1")
    (cell,) = final_cells(book)
    assert (cell.state, cell.reason) == ("void", "NotIdle")
    assert book.plan().status["counts"]["void"] == 1


def test_what_ended_a_trial_is_said_of_that_reason_alone() -> None:
    """A cell that was void before, for another reason, has that reason's words."""
    void = OpenCell(load="a", outcome="void", reason="ScheduleLag")
    gone = OpenCell(load="b", outcome="not_run", reason="ServerGone")
    for cells, expected in (((void, gone), reasons.text("ScheduleLag")), ((gone,), "GET /health: refused")):
        outcome = Outcome(planned=3, valid=1, open=cells, why="GET /health: refused")
        memory = Memory(order=1, created=0.0, server_gone=5.0, outcome=outcome, ended=6.0)
        end, failure = judge(Trial(memory))
        assert end == "transient"
        assert failure is not None
        assert failure.message == expected
