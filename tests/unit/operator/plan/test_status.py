"""Blocks, analyses, and what the status says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from goodput.analysis.schema.answer import AnalysisAnswer, Best, TopRow
from goodput.operator import actions as do
from goodput.operator.observed import Analysis, Failure
from goodput.operator.spec.statusmodel import SweepStatus


def started(book: Any) -> list[do.StartAnalysis]:
    return [action for action in book.actions() if isinstance(action, do.StartAnalysis)]


def test_the_next_block_begins_when_the_last_has_ended(book: Any) -> None:
    for number in range(2):
        book.done(book.id(number))
    book.spec("plan", parallelism=3)
    assert [a.trial for a in book.actions() if isinstance(a, do.Remember)] == [book.id(2)]
    book.done(book.id(2))
    assert [a.trial.block for a in book.actions() if isinstance(a, do.Remember)] == ["1", "1", "1"]


def test_each_block_is_analysed_while_the_next_one_runs(book: Any) -> None:
    book.finish_block("0")
    (found,) = started(book)
    assert (found.generation, found.block, found.states.final) == (1, "0", False)
    assert set(found.logs) == set(book.trials)
    assert any(isinstance(action, do.Remember) for action in book.actions())
    book.analyses[1] = Analysis("running", book.now, "0")
    assert started(book) == []


def test_a_failed_analysis_is_tried_three_times(book: Any) -> None:
    book.finish_block("0")
    book.finish_block("1")
    for generation in (1, 2, 3):
        (found,) = started(book)
        assert (found.generation, found.block) == (generation, None)
        book.analyses[generation] = Analysis("failed", book.now, None, Failure("AnalysisFailed", "no disk"))
    assert started(book) == []
    assert book.plan().status["phase"] == "PartiallyFailed"
    assert book.condition("Complete")["reason"] == "AnalysisFailed"
    assert "no disk" in book.condition("ResultsCommitted")["message"]


def test_the_final_analysis_waits_for_the_one_that_runs(book: Any) -> None:
    book.finish_block("0")
    book.analyses[1] = Analysis("running", book.now, "0")
    book.finish_block("1")
    assert started(book) == []
    assert book.plan().status["phase"] == "Finishing"


def test_logs_are_dropped_only_once_they_are_in_the_store(book: Any) -> None:
    first = book.id(0)
    book.finish_block("0")
    book.analyses[1] = Analysis(
        "succeeded", book.now, "0", answer=AnalysisAnswer(generation=1, uploaded_logs=(first.name,))
    )
    assert [action.trial for action in book.actions() if isinstance(action, do.DropLogs)] == [first]


@pytest.fixture
def answered(book: Any) -> Any:
    book.finish_block("0")
    book.finish_block("1")
    winner = book.config(2048)
    load = book.sweep.load_ids[0]
    answer = AnalysisAnswer(
        generation=1,
        verdict="winner",
        reason="AllLowerLimits",
        message="2048 wins",
        best=Best(config=winner, load=load, goodput=1.9, interval=(1.8, 2.0)),
        top=(TopRow(config=winner, load=load, goodput=1.9, attainment=0.95, feasible=True),),
    )
    book.analyses[1] = Analysis("succeeded", book.now, None, answer=answer)
    return book


def test_the_leader_is_in_the_status(answered: Any) -> None:
    status = answered.plan().status
    assert status["phase"] == "Succeeded"
    assert status["progress"] == "12/12"
    assert status["best"]["args"] == {"max_num_batched_tokens": "2048"}
    assert (status["best"]["verdict"], status["best"]["interval"]) == ("winner", [1.8, 2.0])
    assert status["verdict"] == {"name": "winner", "reason": "AllLowerLimits", "message": "2048 wins"}
    assert status["resultsURI"] == "s3://bucket/sweeps/sweep=default.book.01234567"
    assert "estimate" not in status


def test_a_sweep_without_a_feasible_config_says_so_where_it_says_succeeded(answered: Any) -> None:
    told = "No request of any config completed, most often: Http400."
    answer = AnalysisAnswer(generation=1, verdict="infeasible", reason="NoLoadQualifies", message=told)
    answered.analyses[1] = Analysis("succeeded", answered.now, None, answer=answer)
    assert answered.plan().status["phase"] == "Succeeded"
    complete = answered.condition("Complete")
    assert complete["message"] == f"every planned cell was measured or pruned; infeasible: {told}"


def test_the_status_fits_the_schema_of_the_crd(answered: Any) -> None:
    SweepStatus.model_validate_json(_json(answered.plan().status))
    answered.analyses.clear()
    answered.trials.clear()
    answered.measuring(answered.id(0))
    running = answered.plan().status
    SweepStatus.model_validate_json(_json(running))
    assert running["estimate"]["trials"] == 6
    assert running["observedGeneration"] == 3


def test_a_condition_moves_only_when_its_status_does(book: Any) -> None:
    book.turn()
    before = book.condition("Progressing")["lastTransitionTime"]
    book.now += 500
    book.measuring(book.id(0))
    assert book.condition("Progressing")["lastTransitionTime"] == before
    book.spec(suspend=True)
    book.trials.clear()
    assert book.condition("Progressing")["lastTransitionTime"] != before


def test_nothing_changes_in_the_status_while_nothing_happens(book: Any) -> None:
    book.measuring(book.id(0))
    first = book.turn().status
    book.now += 5
    assert {**book.plan().status, "gpuHoursUsed": 0} == {**first, "gpuHoursUsed": 0}


def test_only_a_sweep_without_any_valid_cell_has_failed(book: Any) -> None:
    for number in range(3):
        book.over(book.id(number), failure="InvalidServerArgs")
    book.analyses[1] = Analysis("succeeded", book.now, None)
    assert book.plan().status["phase"] == "Failed"
    assert book.condition("Failed")["reason"] == "NoValidCell"
    assert book.plan().status["lastError"]["reason"] == "InvalidServerArgs"


def _json(status: Any) -> str:
    return json.dumps(status)
