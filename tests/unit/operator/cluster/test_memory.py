"""A trial's memory survives as annotations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from goodput.operator.actions import Note
from goodput.operator.cluster import memory, names
from goodput.operator.observed import Failure
from goodput.operator.sweep import TrialId
from goodput.runner.contract import OpenCell, Outcome

TRIAL = TrialId("0", "0123456789", 1)
times = st.none() | st.floats(min_value=0, max_value=4e9)
outcomes = st.builds(
    Outcome,
    planned=st.integers(0, 9),
    valid=st.integers(0, 9),
    open=st.tuples(st.builds(OpenCell, load=st.text(max_size=9), outcome=st.just("void"), reason=st.text(max_size=9))),
)
notes = st.builds(
    Note,
    st.just(TRIAL),
    server_running=times,
    server_ready=times,
    server_gone=times,
    released=times,
    ended=times,
    outcome=st.none() | outcomes,
    failure=st.none() | st.builds(Failure, st.text(max_size=20), st.text()),
    interrupted=st.none() | st.booleans(),
)


def config_map(annotations: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations, "creationTimestamp": "2026-11-30T06:00:00Z"}}


@given(notes)
def test_what_is_noted_is_remembered(note: Note) -> None:
    found = memory.read(config_map({names.ORDER: "7", **memory.as_annotations(note)}))
    assert found.order == 7
    again = Note(
        TRIAL,
        server_running=found.server_running,
        server_ready=found.server_ready,
        server_gone=found.server_gone,
        released=found.released,
        ended=found.ended,
        outcome=found.outcome,
        failure=found.failure,
        interrupted=found.interrupted,
    )
    assert again == replace(note, interrupted=bool(note.interrupted))


def test_a_note_leaves_alone_what_it_does_not_say() -> None:
    assert memory.as_annotations(Note(TRIAL, server_ready=1.5)) == {names.SERVER_READY: "1.5"}


def test_a_message_that_is_no_outcome_is_none() -> None:
    assert memory.outcome("Traceback (most recent call last):") is None
    assert memory.outcome('{"v": 1, "planned": 2}') is None
    assert memory.outcome(None) is None


def test_logs_are_none_saved_or_uploaded() -> None:
    for state in ("server", "saved", "uploaded"):
        assert memory.read(config_map({names.SAVED_LOGS: state})).logs == state
    assert memory.read(config_map({})).logs == "none"
