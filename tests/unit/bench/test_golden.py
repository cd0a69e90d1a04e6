"""The golden server's pure parts: scripts, rendering, requests, the catalogue."""

from __future__ import annotations

import http.client
import io
import json
import re
import socket
import time
from collections import Counter
from typing import Any, get_args

import pytest
from bench.golden.build import Endpoint
from bench.golden.catalogue import cases, catalogue
from bench.golden.render import Form, Piece, cut, first_event, framed
from bench.golden.request import asked_tokens, number, prompt_tokens, take_request
from bench.golden.script import Case, Match, Script, ScriptError, Send, Stall, Stream, Wait
from bench.golden.stamps import Stamps
from bench.golden.stream import stream_steps, whole_answer

ENDPOINTS: tuple[Endpoint, ...] = get_args(Endpoint)
REQUEST = b'POST /v1/completions HTTP/1.1\r\nX-Request-Id: req-7-0\r\ncontent-length: 15\r\n\r\n{"prompt":[3,4]GET /'


def read(data: bytes) -> tuple[int, bytes]:
    """Status and body, by the standard library."""

    class Socket:
        def makefile(self, _mode: str) -> io.BytesIO:
            return io.BytesIO(data)

    response = http.client.HTTPResponse(Socket())  # type: ignore[arg-type]  # only makefile is used
    response.begin()
    return response.status, response.read()


def documents(body: bytes) -> list[dict[str, Any]]:
    events = [event.removeprefix(b"data: ") for event in body.split(b"\n\n")[:-1]]
    assert events[-1] == b"[DONE]"
    return [json.loads(event) for event in events[:-1]]


def sent(case: Case) -> bytes:
    assert not isinstance(case.plan, Stream)
    return b"".join(step.data for step in case.plan if isinstance(step, Send))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_catalogue_is_what_it_says(endpoint: Endpoint) -> None:
    rows = cases(endpoint)
    verdicts = Counter(case.verdict for case in rows)
    assert len({case.name for case in rows}) == len(rows) >= 110
    assert verdicts["failure"] >= 60
    assert verdicts["success"] >= 45
    for case in rows:
        assert not isinstance(case.plan, Stream)
        assert case.tokens == sum(step.tokens for step in case.plan if isinstance(step, Send)), case.name
        assert (case.first is None) == (case.tokens == 0), case.name
        assert case.plan[-1] in {"keep", "close", "reset", "hang"}, case.name
        if case.verdict == "success":
            assert case.tokens == 8, case.name


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_standard_library_reads_the_successes_as_they_are_meant(endpoint: Endpoint) -> None:
    unfinished = {"closed behind [DONE]", "reset behind [DONE]", "hang behind [DONE]"}
    for case in (case for case in cases(endpoint) if case.verdict == "success"):
        data = sent(case) + (b"0\r\n\r\n" if case.name in unfinished else b"")
        status, body = read(data)
        lines = re.split(rb"\r\n|\n|\r", body.removeprefix(b"\xef\xbb\xbf"))
        assert status == 200, case.name
        assert any(line in {b"data: [DONE]", b"data:[DONE]"} for line in lines), case.name


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("match", get_args(Match))
def test_a_script_comes_back_from_json(endpoint: Endpoint, match: Match) -> None:
    script = catalogue(endpoint, 5, match)
    stalled = Script(default=Case("s", Stream(ttft=0.1), tokens=None), stall=Stall(1.0, 2.0), keep_requests=True)
    for told in (script, stalled):
        assert Script.of(json.loads(json.dumps(told.document()))) == told
    assert script.case(3) == script.requests[3]
    assert script.case(None) == script.case(10_000) == script.default


@pytest.mark.parametrize(
    "document",
    [
        {"match": "luck"},
        {"default": {"steps": [["sned", "x", 0]]}},
        {"default": {"steps": [["dance"]]}},
        {"default": {"steps": [["send", "☃", 0]]}},
        {"default": {"usage": "always"}},
        {"default": {"ttfb": 1}},
        {"default": {"steps": [], "ttft": 1}},
        {"requests": [{"ttft": 1}]},
        {"stall": {"after": 1}},
    ],
)
def test_what_is_no_script_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ScriptError):
        Script.of(document)


def test_requests() -> None:
    assert take_request(REQUEST[:90]) is None
    taken = take_request(REQUEST)
    assert taken is not None
    request, rest = taken
    assert (request.method, request.path, request.chat, request.close, rest) == (
        "POST",
        "/v1/completions",
        False,
        False,
        b"GET /",
    )
    document = {"prompt": [3, 4], "max_tokens": 9}
    assert (asked_tokens(document), prompt_tokens(document)) == (9, 2)
    assert (asked_tokens({}), prompt_tokens({"prompt": "a b c"})) == (16, 3)
    assert [number(match, request, document, 5) for match in get_args(Match)] == [5, 3, 7]
    assert number("prompt", request, {"prompt": "x"}, 5) is None


def test_without_the_kernels_stamp_a_read_arrived_when_it_was_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stamps = Stamps(listener)
    before = time.monotonic_ns()
    arrived, kernel = stamps.of([])
    assert before <= arrived <= time.monotonic_ns()
    assert not kernel


def test_a_segment_carries_the_tokens_that_it_completes() -> None:
    wire = framed([Piece(b"data: a\n\n", 1), Piece(b"data: b\n\n", 2)], b"H", b"E")
    assert [wire.data[end - 2 : end] for end, _ in wire.marks] == [b"\n\n", b"\n\n"]
    first = wire.marks[0][0]
    steps = cut(wire, [first - 1, first], 0.5)
    assert [step.tokens for step in steps if isinstance(step, Send)] == [0, 1, 2]
    assert [step for step in steps if isinstance(step, Wait)] == [Wait(0.5)] * 2
    assert first_event([Piece(b": c\n\n"), Piece(b"data: r\n\n"), Piece(b"data: t\n\n", 1)]) == 1


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(("continuous", "final"), [(True, True), (False, True), (False, False)])
def test_a_stream_is_as_asked(chat: bool, continuous: bool, final: bool) -> None:
    plan = Stream(ttft=0.5, gap=0.1, per_event=2)
    steps = stream_steps(plan, Form(chat), 5, continuous=continuous, final=final)
    assert [step for step in steps if isinstance(step, Wait)] == [Wait(0.5), Wait(0.1), Wait(0.1)]
    assert [step.tokens for step in steps if isinstance(step, Send) and step.tokens] == [2, 2, 1]
    status, body = read(b"".join(step.data for step in steps if isinstance(step, Send)))
    told = documents(body)
    counts = [row["usage"]["completion_tokens"] for row in told if "usage" in row]
    assert status == 200
    assert counts == ([0] * chat + [2, 4, 5] if continuous else []) + [5] * final
    assert len(told) == chat + 3 + final
    assert [row["choices"][0]["finish_reason"] for row in told if row["choices"]] == [None] * (2 + chat) + ["length"]


def test_an_answer_without_a_stream() -> None:
    status, body = read(whole_answer(Form(chat=True), "a b", 2))
    document = json.loads(body)
    assert (status, document["choices"][0]["message"]["content"]) == (200, "a b")
    assert document["usage"]["completion_tokens"] == 2
