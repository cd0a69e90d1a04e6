from __future__ import annotations

import numpy as np
import pytest

from goodput.runner.dataset.rows import Row, Trace
from goodput.runner.dataset.sample import SampledRows, TraceLengths, share
from goodput.runner.load.errors import PromptError
from goodput.runner.load.prompts import Messages, TextSource

TRACE = Trace(np.array([0, 10, 30, 60], dtype=np.int64) * 1_000_000, (100, 5000, 30, 40), (1, 2, 3, 4), 0)


def letters(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def with_template(messages: Messages) -> list[int]:
    return [1, 2, *letters("".join(message["content"] for message in messages)), 3]


def test_loads_share_the_rows_and_use_none_twice() -> None:
    shares = [share(101, 7, part, 3) for part in range(3)]
    assert sorted(row for rows in shares for row in rows) == list(range(101))
    assert shares[0] != sorted(shares[0])
    assert share(101, 7, 0, 3) == shares[0]
    assert share(101, 8, 0, 3) != shares[0]


def test_rows_are_sent_as_ids_of_their_own_length() -> None:
    rows = SampledRows([Row("four", text="hello"), Row(7, ids=(5, 6, 7))], letters, None, None)
    assert [rows.at(0), rows.at(1)] == [(5, 4), (3, 7)]
    assert rows.ids(5, 0).tolist() == letters("hello")
    assert rows.ids(3, 1).tolist() == [5, 6, 7]
    assert rows.unique is None, "nobody has asked for more than there is"


def test_a_chat_is_as_long_as_its_template_makes_it() -> None:
    messages = [{"role": "system", "content": "ab"}, {"role": "user", "content": "c"}]
    rows = SampledRows([Row(4, text="hello"), Row(1, messages=messages)], letters, with_template, None)
    assert [rows.at(0), rows.at(1)] == [(8, 4), (6, 1)]
    assert rows.messages(8, 0) == [{"role": "user", "content": "hello"}]
    assert rows.messages(6, 1) == messages
    assert isinstance(rows, TextSource)


def test_rows_that_are_too_long_or_empty_are_left_out_and_then_rows_repeat() -> None:
    rows = SampledRows([Row(1, text=text) for text in ("aa", "bbbb", "", "cc")], letters, None, 4)
    assert [chr(rows.ids(0, index)[0]) for index in range(5)] == ["a", "c", "a", "c", "a"]
    assert (rows.unique, rows.left_out) == (2, 2)
    with pytest.raises(PromptError, match="no row of the dataset has at most 2 tokens"):
        SampledRows([Row(1, text="aa")], letters, None, 2).at(0)


def test_tokens_are_counted_once() -> None:
    counted: list[str] = []

    def count(text: str) -> list[int]:
        counted.append(text)
        return letters(text)

    rows = SampledRows([Row("answer", text="a"), Row("other", text="b")], count, None, None)
    for _ in range(3):
        rows.at(0)
        rows.ids(1, 0)
    assert counted == ["a", "answer"]


def test_a_replay_keeps_the_order_and_the_times_of_what_fits() -> None:
    lengths = TraceLengths(TRACE, 4096, seed=None)
    assert [lengths.at(index) for index in range(4)] == [(100, 1), (30, 3), (40, 4), (100, 1)]
    assert lengths.times(10).tolist() == [0, 3_000_000, 6_000_000]
    assert lengths.times(0.5).tolist() == [0, 60_000_000, 120_000_000]
    assert lengths.left_out == 1
    assert TraceLengths(TRACE, 4096, seed=None, shortest=35).at(1) == (35, 3)
    with pytest.raises(PromptError, match="no request of the trace has at most 2 tokens"):
        TraceLengths(TRACE, 2, seed=None)


def test_other_arrivals_take_the_lengths_in_a_random_order() -> None:
    trace = Trace(np.arange(50, dtype=np.int64), tuple(range(1, 51)), (1,) * 50, 0)
    orders = [[TraceLengths(trace, None, seed=seed).at(index)[0] for index in range(50)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(1, 51))
