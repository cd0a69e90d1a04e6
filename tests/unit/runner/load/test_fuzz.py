"""Damaged answers through the hot loop and the parser: nothing crashes, and no failure looks like a success."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import get_args

import pytest
from bench.fuzz.check import Again, check
from bench.fuzz.corpus import Answer, Ending, answers
from bench.fuzz.rig import Rig
from bench.golden.catalogue import cases
from bench.golden.render import CHUNKED, LAST_CHUNK, chunk

from goodput.runner.load.connection import Connection

EVENT = b'data: {%b"choices":[{"text":"x","finish_reason":%b}],"usage":{"prompt_tokens":1,"completion_tokens":%d}}\n\n'
DONE = b"data: [DONE]\n\n"


def event(total: int, finish: bytes = b"null", more: bytes = b"") -> bytes:
    return EVENT % (more, finish, total)


def answer(*events: bytes, ending: Ending = "keep") -> Answer:
    data = CHUNKED + b"".join(chunk(part) for part in events) + LAST_CHUNK
    return Answer("", data, (), ending, None)


@pytest.mark.parametrize("kind", ["byte by byte", "cut at random"])
def test_undamaged_answers_are_judged_as_the_catalogue_says_however_they_are_cut(kind: str) -> None:
    rig, generator = Rig(), random.Random(7)
    good = {f"{e}: {case.name}" for e in ("completions", "chat") for case in cases(e, 4) if case.verdict == "success"}
    for told in answers():
        every = range(1, len(told.data))
        places = tuple(every) if kind == "byte by byte" else tuple(sorted(generator.sample(every, min(9, len(every)))))
        if told.name.endswith("bytes behind the last chunk"):
            continue  # a read that ends with the answer leaves them to the next request, for which the worker gives up
        for again in get_args(Again):
            result = check(rig, replace(told, places=places), again)
            assert result.complaints == [], told.name
            assert (result.reason is None) == (told.name in good), told.name


GOOD = answer(event(1), event(2), event(3), event(4, b'"length"'), DONE)
REGRESSIONS = {
    "an error object that says nothing, beside tokens": answer(
        event(1), event(2), event(3, more=b'"error":{},'), event(4, b'"length"'), DONE
    ),
    "an error object that says nothing, beside the usage": answer(
        *(event(total) for total in (1, 2, 3)), event(4, b'"length"'), b'data: {"error":{},"usage":{}}\n\n', DONE
    ),
    "an abort before the finish reason": answer(event(1), event(2, b'"abort"'), event(3), event(4, b'"length"'), DONE),
    "six tokens, two of them without a choice": answer(
        b'data: {"usage":{"completion_tokens":2}}\n\n', event(3), event(6, b'"length"'), DONE
    ),
    "a chunk that begins like the last one, and is cut off there": Answer(
        "", CHUNKED + chunk(event(1) + b"data: ") + b"7\r\n0\r\n\r\n", (), "close", None
    ),
    "a carriage return inside a trailer": replace(GOOD, data=GOOD.data.removesuffix(b"\r\n") + b"X-T: 1\r: 2\r\n\r\n"),
    "white space of Unicode before the content type": replace(
        GOOD, data=GOOD.data.replace(b"Content-Type: ", b"Content-Type:\xa0")
    ),
    "an abort behind the finish reason": answer(
        event(1), event(2), event(3), event(4, b'"length"'), b'data: {"choices":[{"finish_reason":"abort"}]}\n\n', DONE
    ),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_what_was_found_before(name: str) -> None:
    for again in get_args(Again):
        result = check(Rig(), REGRESSIONS[name], again)
        assert result.complaints == []
        assert result.reason is not None


def test_an_undamaged_answer_like_these_is_a_success() -> None:
    assert check(Rig(), GOOD, "json") == (None, [])


@pytest.mark.parametrize(
    "fault", ["abort is taken for an end", "errors are overlooked", "any blank line ends an answer"]
)
def test_the_check_finds_what_is_broken_on_purpose(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "abort is taken for an end":
        monkeypatch.setattr("goodput.runner.load.verdict.GOOD_FINISHES", {"length", "stop", "abort"})
    elif fault == "errors are overlooked":
        monkeypatch.setattr("goodput.runner.load.events._is_error", lambda _: False)
    else:
        monkeypatch.setattr(Connection, "terminated", lambda _, data: data.endswith(b"\r\n\r\n"))
    rig = Rig()
    assert any(check(rig, undamaged).complaints for undamaged in answers())
