"""Every way a stream can go, over real sockets: outcome, reason and token counts are exactly the script's."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from goodput.analysis.schema import Load

if TYPE_CHECKING:
    from tests.integration.runner.load.conftest import Golden, RunCell, Step

ASKED = 4
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Case:
    """A script and the truth about it. ``first``: which bytes step completes the first token."""

    name: str
    steps: list[Step]
    reason: str | None
    tokens: int | None
    first: int | None
    outcome: str = "failed"


def usage(total: int) -> dict[str, int]:
    return {"prompt_tokens": 4, "total_tokens": 4 + total, "completion_tokens": total}


def data(document: object) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def token(total: int, text: str = "x", finish: str | None = None, counted: bool = True) -> bytes:
    document: dict[str, Any] = {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}
    return data({**document, "usage": usage(total)} if counted else document)


def tokens(count: int, *, last: str | None = "length", counted: bool = True) -> list[bytes]:
    return [token(total, finish=last if total == count else None, counted=counted) for total in range(1, count + 1)]


def chunk(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def chunks(*events: bytes, end: bytes = LAST) -> list[Step]:
    """Head, one chunk and segment per event, and what ends the body."""
    steps: list[Step] = [CHUNKED]
    for payload in events:
        steps += [chunk(payload), 0.004]  # so that they are segments of their own
    return [*steps, end]


def kept(*events: bytes) -> list[Step]:
    return [*chunks(*events), "keep"]


def whole(stream: bytes) -> list[Step]:
    """All in one segment."""
    return [CHUNKED + chunk(stream) + LAST, "keep"]


def good(name: str, steps: list[Step], first: int | None = 1) -> Case:
    return Case(name, steps, None, ASKED, first, "completed")


def bad(name: str, reason: str, steps: list[Step], count: int | None, first: int | None = 1) -> Case:
    return Case(name, steps, reason, count, first)


def stuck(name: str, steps: list[Step], count: int | None, first: int | None) -> Case:
    return Case(name, [*steps, "hang"], "DrainDeadline", count, first, "incomplete")


FINAL = data({"choices": [], "usage": usage(ASKED)})
NULL_FINAL = data({"choices": None, "usage": usage(ASKED)})
STREAM = b"".join([*tokens(ASKED), FINAL, DONE])
WHOLE = CHUNKED + chunk(STREAM) + LAST


def plain_head(lines: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{lines}\r\n\r\n".encode()


def lines(*, end: bytes) -> bytes:
    return STREAM.replace(b"\n", end)


def refusal(status: str, headers: str = "") -> list[Step]:
    body = b'{"error":{"message":"no"}}'
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return [head.encode() + body, "keep"]


def page(content_type: str, body: bytes, extra: str = "") -> list[Step]:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
    return [head.encode() + body, "keep"]


def chat(delta: dict[str, Any], total: int, finish: str | None = None) -> bytes:
    return data({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": usage(total)})


ROLE = chat({"role": "assistant", "content": ""}, 0)
WORDS = [chat({"content": "x"}, n, "stop" if n == ASKED else None) for n in (1, 2, 3, 4)]
EMPTY = [token(n, "", "stop" if n == ASKED else None) for n in (1, 2, 3, 4)]
CALLS = [chat({"reasoning_content": "x"}, 1), WORDS[1], chat({"tool_calls": [{}]}, 3), chat({}, 4, "tool_calls")]
FIELDS = b"event: message\nid: 7\nretry: 10\ndata: {"
TRAILER = b"000;x\r\nX-T: 1\r\nX-U: 2\r\n\r\n"
ERROR = data({"error": {"message": "no", "code": 500}})
FLAT_ERROR = data({"object": "error", "message": "no"})
THREE = data({"choices": [], "usage": usage(3)})
NINE = data({"choices": [], "usage": usage(9)})

SUCCESSES = [
    good("plain", kept(*tokens(4), FINAL, DONE)),
    good("usage chunk with null choices", kept(*tokens(4), NULL_FINAL, DONE)),
    good("two tokens per chunk", kept(token(2), token(4, finish="length"), DONE)),
    good("first token has no text", kept(token(1, ""), *tokens(4)[1:], DONE)),
    good("no token has text", kept(*EMPTY, DONE)),
    good("last token has no text", kept(*tokens(3, last=None), token(4, "", "length"), DONE)),
    good("all in one segment", [WHOLE, "keep"], 0),
    good("byte by byte", [*[WHOLE[i : i + 1] for i in range(len(WHOLE))], "keep"], None),
    good("utf-8 split", kept(token(1), token(2, "é😀"), *tokens(4)[2:], DONE)),
    good("role chunk first", kept(ROLE, *WORDS, DONE), 2),
    good("reasoning and tool calls", kept(*CALLS, DONE)),
    good("no continuous usage", kept(*tokens(4, counted=False), FINAL, DONE)),
    good("no usage at all", kept(*tokens(4, counted=False), DONE)),
    good("CR LF", whole(lines(end=b"\r\n")), 0),
    good("CR LF in pieces", [CHUNKED, *[chunk(e.replace(b"\n", b"\r\n")) for e in (*tokens(4), DONE)], LAST, "keep"]),
    good("CR", whole(lines(end=b"\r")), 0),
    good("no space after data:", whole(STREAM.replace(b"data: ", b"data:")), 0),
    good("multi-line data", whole(STREAM.replace(b', "usage"', b',\ndata: "usage"')), 0),
    good("other fields", whole(STREAM.replace(b"data: {", FIELDS)), 0),
    good("comments and pings", kept(b": hello\n\n", b":\n\n", *tokens(4), b": ping\n\n", DONE), 3),
    good(
        "chunk extensions and trailer",
        [CHUNKED, *[b"%X;a=b\r\n%b\r\n" % (len(e), e) for e in (*tokens(4), DONE)], TRAILER, "keep"],
    ),
    good("content length", [plain_head(f"Content-Length: {len(STREAM)}") + STREAM, "keep"], 0),
    good("until close", [plain_head("Connection: close") + STREAM, "close"], 0),
    good("HTTP/1.0", [plain_head("X: y").replace(b"1.1", b"1.0") + STREAM, "close"], 0),
    good("100 continue first", [b"HTTP/1.1 100 Continue\r\n\r\n", WHOLE, "keep"], 1),
    good("closed after [DONE]", [CHUNKED + chunk(STREAM), "close"], 0),
    good("answer says close", [WHOLE.replace(b"200 OK\r\n", b"200 OK\r\nConnection: close\r\n"), "close"], 0),
]

FAILURES = [
    bad("400", "Http400", refusal("400 Bad Request"), None, None),
    bad("401", "Http401", refusal("401 Unauthorized"), None, None),
    bad("404", "Http404", refusal("404 Not Found"), None, None),
    bad("429", "Http429", refusal("429 Too Many Requests", "Retry-After: 0\r\n"), None, None),
    bad("500", "Http500", refusal("500 Internal Server Error"), None, None),
    bad("503", "Http503", refusal("503 Service Unavailable"), None, None),
    bad("redirect", "Http307", refusal("307 Temporary Redirect", "Location: /x\r\n"), None, None),
    bad("500 with a stream", "Http500", [WHOLE.replace(b"200 OK", b"500 X"), "keep"], None, None),
    bad("HTML 200", "NotEventStream", page("text/html", b"<html>hello</html>"), None, None),
    bad("JSON error 200", "NotEventStream", page("application/json", b'{"error":"x"}'), None, None),
    bad("empty 200", "NotEventStream", [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "keep"], None, None),
    bad("empty stream", "EmptyResponse", page("text/event-stream", b""), None, None),
    bad(
        "gzip",
        "UnexpectedEncoding",
        page("text/event-stream", gzip.compress(STREAM), "Content-Encoding: gzip\r\n"),
        None,
        None,
    ),
    bad("error first", "StreamError", kept(ERROR, DONE), None, None),
    bad("error after tokens", "StreamError", kept(*tokens(2), ERROR, DONE), 2),
    bad("flat error, no [DONE]", "StreamError", kept(*tokens(2), FLAT_ERROR), 2),
    bad("event: error", "StreamError", kept(*tokens(2), b'event: error\ndata: {"x": 1}\n\n', DONE), 2),
    bad("error after the finish", "StreamError", kept(*tokens(4), data({"error": "late"}), DONE), 4),
    bad("bare JSON error line", "MalformedEvent", kept(*tokens(4), b'{"error": "no"}\n\n', DONE), 4),
    bad("close mid-stream", "Truncated", [*chunks(*tokens(2, last=None), end=b""), "close"], 2),
    bad("close inside an event", "Truncated", [CHUNKED + chunk(token(1)) + b"40\r\ndata: {", "close"], 1, 0),
    bad("close before [DONE]", "NoDone", [plain_head("Connection: close") + b"".join(tokens(4)), "close"], 4, 0),
    bad("no [DONE]", "NoDone", kept(*tokens(4)), 4),
    bad("no finish reason", "NoFinishReason", kept(*tokens(4, last=None), DONE), 4),
    bad("abort", "Aborted", kept(*tokens(2, last="abort"), DONE), 2),
    bad("abort at full length", "Aborted", kept(*tokens(4, last="abort"), DONE), 4),
    bad("reset mid-stream", "Reset", [*chunks(*tokens(2, last=None), end=b""), 0.05, "reset"], 2),
    bad("reset before the head", "Reset", ["reset"], None, None),
    bad("close before the head", "ClosedBeforeAnswer", ["close"], None, None),
    bad("too short", "ShortOutput", kept(*tokens(3), DONE), 3),
    bad("too long", "LongOutput", kept(*tokens(5), DONE), 5),
    bad("too short, usage at the end", "ShortOutput", kept(*tokens(3, counted=False), THREE, DONE), 3),
    bad("closing usage differs", "UsageMismatch", kept(*tokens(4), NINE, DONE), 4),
    bad("usage goes down", "UsageMismatch", kept(token(1), token(3), token(2), token(4, finish="stop"), DONE), 4),
    bad("no usage, another length", "LengthUnknown", kept(*tokens(3, counted=False), DONE), None),
    bad(
        "content length too long",
        "Truncated",
        [plain_head("Content-Length: 99999") + b"".join(tokens(4)), "close"],
        4,
        0,
    ),
    bad("content length too short", "MalformedHttp", [plain_head("Content-Length: 20") + STREAM, "keep"], None, None),
    bad(
        "chunk longer than said",
        "MalformedChunk",
        [CHUNKED + chunk(token(1)) + b"5\r\ndata: {}\n\n\r\n" + LAST, "keep"],
        1,
        0,
    ),
    bad("chunk size no number", "MalformedChunk", [CHUNKED + b"zz\r\n" + STREAM + b"\r\n" + LAST, "close"], None, None),
    bad("event no JSON", "MalformedEvent", kept(*tokens(4), b"data: {oops\n\n", DONE), 4),
    bad("not HTTP", "MalformedHttp", [b"220 mail.example ESMTP\r\n\r\n", "close"], None, None),
    bad(
        "two content lengths",
        "MalformedHttp",
        [plain_head("Content-Length: 5\r\nContent-Length: 6") + STREAM, "close"],
        None,
        None,
    ),
    stuck("hang before the head", [], None, None),
    stuck("hang before the first token", [CHUNKED], None, None),
    stuck("hang mid-stream", chunks(*tokens(2, last=None), end=b""), 2, 1),
    stuck("hang with pings", chunks(*tokens(2, last=None), *[b": ping\n\n"] * 9, end=b""), 2, 1),
    Case("error, then hang", [*chunks(token(1), data({"error": "x"}), end=b""), "hang"], "StreamError", 1, 1),
    Case("500, then hang", [b"HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\n", "hang"], "Http500", None, None),
    Case("hang after [DONE]", [CHUNKED + chunk(STREAM), "hang"], None, ASKED, 0, "completed"),
]

CASES = SUCCESSES + FAILURES


@pytest.mark.parametrize("processes", [1, 2])
def test_outcomes_reasons_and_token_counts_are_the_scripts(golden: Golden, run_cell: RunCell, processes: int) -> None:
    server = golden([case.steps for case in CASES])
    load = Load(prompt_tokens=4, output_tokens=ASKED, arrival="constant", request_rate=100, window_requests=len(CASES))
    cell = run_cell(server.port, load, drain=2.0, processes=processes)

    rows = cell.requests.to_pylist()[: len(CASES)]
    told = {
        case.name: (row["outcome"], row["reason"], row["output_tokens"]) for case, row in zip(CASES, rows, strict=True)
    }
    assert told == {case.name: (case.outcome, case.reason, case.tokens) for case in CASES}
    for case, row in zip(CASES, rows, strict=True):
        assert (row["first_s"] is None) == (case.first is None and case.name != "byte by byte"), case.name
    assert all(row["in_window"] for row in rows)
    assert cell.counts.attempted == len(CASES)
    assert cell.counts.completed == sum(case.outcome == "completed" for case in CASES)
    assert cell.counts.incomplete == sum(case.outcome == "incomplete" for case in CASES)
    assert not cell.window.drained
    assert cell.client.planned == cell.client.sent == len(CASES)


def test_the_first_token_has_the_stamp_of_the_segment_that_completes_it(golden: Golden, run_cell: RunCell) -> None:
    cases = [case for case in SUCCESSES if case.first is not None]
    server = golden([case.steps for case in cases])
    load = Load(prompt_tokens=4, output_tokens=ASKED, arrival="constant", request_rate=50, window_requests=len(cases))
    cell = run_cell(server.port, load)
    start = cell.monotonic_opened - cell.window.opened
    for number, (case, row) in enumerate(zip(cases, cell.requests.to_pylist(), strict=False)):
        assert case.first is not None
        sends = server.seen[number].sends
        first = start + row["first_s"]
        assert first >= sends[case.first][0] / 1e9 - 0.0002, case.name  # not before it was sent
        if case.first + 1 < len(sends) and row["stamp_source"] == "kernel":
            assert first < sends[case.first + 1][0] / 1e9 + 0.0002, case.name  # nor with a later one
