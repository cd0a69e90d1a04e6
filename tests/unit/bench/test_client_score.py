"""What a client says, held against what the server knows."""

from __future__ import annotations

from typing import Any

import pytest
from bench.client.score import held, honesty, timing
from bench.client.truth import Served, match, served
from bench.peers.base import Answer


def row(
    arrived: float, *tokens: float, name: str = "case", failure: bool = False, ended: float | None = None
) -> Served:
    return Served(name, failure, arrived, tokens, ended)


def test_truth_has_one_stamp_per_token_and_no_stale_connection() -> None:
    def document(arrived: int, ended: str) -> dict[str, Any]:
        return {
            "name": "a",
            "verdict": "failure",
            "arrived_ns": arrived,
            "ended": ended,
            "ended_ns": 9_000_000_000,
            "sends": [[0, 1_000_000_000, 0, 0, 0], [2, 2_000_000_000, 0, 0, 0], [1, 4_000_000_000, 0, 0, 0]],
        }

    (found,) = served([document(1_000_000_000, "complete"), document(500_000_000, "stale")])
    assert found.failure
    assert found.tokens == (2.0, 2.0, 4.0)
    assert found.ttft == 1.0
    assert found.gaps == (0.0, 2.0)


def test_an_answer_belongs_to_the_next_request_that_arrived() -> None:
    rows = [row(0.5, name="probe"), row(1.001), row(2.004), row(2.005)]
    answers = [Answer(success=True, started=at) for at in (2.003, 1.0, 2.002)]
    pairs = match([*answers, Answer(success=False, started=None)], rows)
    assert [(answer.started, served_row.arrived) for answer, served_row in pairs] == [
        (1.0, 1.001),
        (2.002, 2.004),
        (2.003, 2.005),
    ]


def test_errors_are_absolute_and_gap_by_gap() -> None:
    rows = [row(0.0, 1.0, 2.0, 4.0), row(10.0, 11.0, 12.0, 13.0)]
    answers = [
        Answer(success=True, started=0.0, ttft=0.9, gaps=(1.0, 1.5)),
        Answer(success=True, started=10.0, ttft=1.3, gaps=(1.0, 1.0)),
    ]
    found = timing(match(answers, rows))
    assert found.ttft_p50 == pytest.approx(0.2)
    assert found.gap_p99 == pytest.approx(0.485)
    assert not found.gap_is_mean
    assert found.worst_p99 == found.gap_p99
    assert found.judged == 2


def test_without_single_gaps_the_mean_is_judged() -> None:
    answer = Answer(success=True, started=0.0, ttft=1.0, mean_gap=1.2)
    found = timing(match([answer], [row(0.0, 1.0, 2.0, 3.0)]))
    assert found.gap_is_mean
    assert found.gap_p99 == pytest.approx(0.2)


def test_what_is_not_known_is_none() -> None:
    found = timing([])
    assert (found.ttft_p50, found.ttft_p99, found.gap_p99, found.worst_p99) == (None, None, None, None)
    assert held([row(0.0, ended=1.0)], 1) is None


def test_streams_held_are_those_that_the_server_saw() -> None:
    rows = [row(0.0, ended=10.0), row(0.0, ended=5.0), row(10.0, ended=20.0)]
    assert held(rows, 2) == pytest.approx(1.5)


def test_a_failure_called_success_is_named_and_silence_is_no_success() -> None:
    rows = [
        row(1.0, name="good"),
        row(2.0, name="cut", failure=True),
        row(3.0, name="good, unreported"),
        row(4.0, name="refused", failure=True),
    ]
    answers = [
        Answer(success=True, started=0.9995),
        Answer(success=True, started=1.9995),
        Answer(success=False, started=3.9995),
    ]
    found = honesty(match(answers, rows), rows)
    assert found.called_success == ("cut",)
    assert found.called_failure == ("good, unreported",)
    assert (found.failures, found.successes) == (2, 2)
