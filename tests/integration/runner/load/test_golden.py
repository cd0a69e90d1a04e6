"""Every way an answer can go, over real sockets: what the records say is exactly what the server did."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from bench.golden.catalogue import ASKED, catalogue
from bench.golden.script import Case

from goodput.analysis.schema.base import Endpoint
from goodput.analysis.schema.planned import Load

if TYPE_CHECKING:
    from bench.golden.process import Golden
    from tests.integration.conftest import Authority, Fronts
    from tests.integration.runner.load.conftest import RunCell, StartGolden

    from goodput.runner.load.run import CellRecords

EARLY_SECONDS = 0.0005  # both clocks are read by different processes, the kernel's stamp is placed on the monotonic one
LATE_SECONDS = 0.25  # generous: what a busy machine adds; the distribution is measured in bench/

REASONS = {
    "400": "Http400", "401": "Http401", "403": "Http403", "404": "Http404", "422": "Http422", "429": "Http429",
    "500": "Http500", "503": "Http503", "502 with a page": "Http502", "redirect 302": "Http302",
    "redirect 307": "Http307", "204": "Http204", "500 with a whole stream": "Http500", "500, then hang": "Http500",
    "HTML 200": "NotEventStream", "JSON error 200": "NotEventStream", "JSON answer 200, no stream": "NotEventStream",
    "empty 200": "NotEventStream", "no content type": "NotEventStream", "empty stream": "EmptyResponse",
    "comments only": "EmptyResponse", "[DONE] only": "NoFinishReason", "gzip, not asked for": "UnexpectedEncoding",
    "deflate, not asked for": "UnexpectedEncoding", "error first": "StreamError", "error after tokens": "StreamError",
    "flat error after tokens": "StreamError", "flat error without [DONE]": "StreamError",
    "error as a text": "StreamError", "error as detail": "StreamError", "event: error": "StreamError",
    "error behind the finish reason": "StreamError", "flat error behind the finish reason": "StreamError",
    "error behind [DONE]": "StreamError", "error, then all tokens": "StreamError",
    "error beside choices": "StreamError", "error, then close": "StreamError", "error, then hang": "StreamError",
    "bare JSON error line": "MalformedEvent", "close before the head": "ClosedBeforeAnswer",
    "close inside the head": "ClosedBeforeAnswer", "close behind the head": "Truncated",
    "close after tokens": "Truncated", "close inside a UTF-8 character": "Truncated",
    "close inside a chunk size": "Truncated", "close before the finish reason": "Truncated",
    "close before [DONE]": "Truncated", "until close, after tokens": "NoFinishReason",
    "until close, before [DONE]": "NoDone", "content length too long": "Truncated",
    "reset before the head": "Reset", "reset after tokens": "Reset", "reset before [DONE]": "Reset",
    "no [DONE]": "NoDone", "no [DONE], no usage": "NoDone", "no finish reason": "NoFinishReason",
    "no finish reason, no [DONE]": "NoFinishReason", "abort": "Aborted", "abort at the asked length": "Aborted",
    "content filter": "Aborted", "finish reason error": "Aborted", "one too few": "ShortOutput",
    "one too few, usage at the end": "ShortOutput", "one too few, no usage": "LengthUnknown", "half": "ShortOutput",
    "half, usage at the end": "ShortOutput", "half, no usage": "LengthUnknown", "one too many": "LongOutput",
    "one too many, usage at the end": "LongOutput", "one too many, no usage": "LengthUnknown",
    "no token": "ShortOutput", "closing usage too large": "UsageMismatch", "closing usage too small": "UsageMismatch",
    "closing usage zero": "UsageMismatch", "usage goes down": "UsageMismatch",
    "usage at the end too large": "LongOutput", "usage at the end too small": "ShortOutput",
    "chunk longer than it says": "MalformedChunk", "chunk size no number": "MalformedChunk",
    "bytes behind the last chunk": "MalformedChunk", "content length too short": "MalformedHttp",
    "two content lengths": "MalformedHttp", "not HTTP": "MalformedHttp", "header line without a name": "MalformedHttp",
    "event no JSON": "MalformedEvent", "event no object": "MalformedEvent", "a line of HTML": "MalformedEvent",
    "text that is no UTF-8": "MalformedEvent", "hang before the head": "DrainDeadline",
    "hang inside the head": "DrainDeadline", "hang before the first token": "DrainDeadline",
    "hang before the first token, with pings": "DrainDeadline", "hang after tokens": "DrainDeadline",
    "hang after tokens, with pings": "DrainDeadline", "hang before [DONE]": "DrainDeadline",
}  # fmt: skip
NOT_READ = {"500 with a whole stream"}  # the body of a refusal is not read
LENGTH_UNKNOWN = {name for name, reason in REASONS.items() if reason == "LengthUnknown"}  # a text, and nobody counts
TOLD = {"usage at the end too large": ASKED + 5, "usage at the end too small": ASKED - 1}  # the server's word is all


def run(
    golden: StartGolden,
    run_cell: RunCell,
    endpoint: Endpoint,
    processes: int,
    tls: tuple[Fronts, Authority] | None = None,
) -> tuple[Golden, CellRecords]:
    script = catalogue(endpoint, match="req" if endpoint == "chat" else "prompt")
    server = golden(script)
    count = len(script.requests)
    load = Load(prompt_tokens=4, output_tokens=ASKED, arrival="constant", request_rate=100, window_requests=count)
    over = {} if tls is None else {"url": tls[0](server.port).url, "ca": tls[1].ca}
    return server, run_cell(server.port, load, drain=2.0, processes=processes, endpoint=endpoint, **over)


def tokens(case: Case) -> int | None:
    """What the record must say."""
    if case.name in NOT_READ | LENGTH_UNKNOWN:
        return None
    return TOLD.get(case.name, case.tokens)


@pytest.mark.parametrize(("endpoint", "processes"), [("completions", 1), ("completions", 2), ("chat", 1)])
def test_nothing_differs_from_the_truth(
    golden: StartGolden, run_cell: RunCell, endpoint: Endpoint, processes: int
) -> None:
    judge(*run(golden, run_cell, endpoint, processes), endpoint)


def test_nor_does_it_over_tls(golden: StartGolden, run_cell: RunCell, fronts: Fronts, authority: Authority) -> None:
    judge(*run(golden, run_cell, "completions", 1, (fronts, authority)), "completions")


def judge(server: Golden, cell: CellRecords, endpoint: Endpoint) -> None:
    """Every record against what the server says that it did."""
    cases = catalogue(endpoint).requests
    rows = cell.requests.to_pylist()[: len(cases)]
    failures = {case.name for case in cases if case.verdict == "failure"}
    assert set(REASONS) == failures
    hangs = {name for name, reason in REASONS.items() if reason == "DrainDeadline"}

    expected = {
        case.name: (
            "incomplete" if case.name in hangs else "failed" if case.name in failures else "completed",
            REASONS.get(case.name),
            tokens(case) or (None if case.name != "no token" else 0),
        )
        for case in cases
    }
    told = {
        case.name: (row["outcome"], row["reason"], row["output_tokens"]) for case, row in zip(cases, rows, strict=True)
    }
    assert told == expected
    truth = last_rows(server)
    assert {number: truth[number]["tokens"] for number in truth} == {n: case.tokens for n, case in enumerate(cases)}
    assert [truth[n]["name"] for n in range(len(cases))] == [case.name for case in cases]
    assert all(row["in_window"] for row in rows)
    assert cell.counts.attempted == cell.client.planned == cell.client.sent == len(cases)
    assert cell.counts.completed == len(cases) - len(failures)
    assert cell.counts.incomplete == len(hangs)
    assert cell.counts.reasons == Counter(REASONS.values())
    assert not cell.window.drained
    for case, row in zip(cases, rows, strict=True):
        check_times(case, row, truth[row["request"]], cell.monotonic_opened - cell.window.opened)


def last_rows(server: Golden) -> dict[int, dict[str, Any]]:
    """What the server did for each scripted request, the last time where one was sent again."""
    return {row["request"]: row for row in server.truth() if row["name"] != "default"}


def check_times(case: Case, row: dict[str, Any], truth: dict[str, Any], start: float) -> None:
    """First and last token, and the first behind reasoning, have the stamps of the segments that complete their events.

    No stamp may lie before its send: so no event before it, a role's for one, was taken for the first token.
    """
    carrying = [n for n, send in enumerate(truth["sends"]) if send[0]]
    if case.name in NOT_READ or not carrying:
        assert (row["first_s"], row["answer_s"]) == (None, None), case.name
        return
    assert row["sent_s"] + start <= truth["arrived_ns"] / 1e9 + EARLY_SECONDS, case.name
    for told, number in ((row["first_s"], carrying[0]), (row["last_s"], carrying[-1])):
        before, after = truth["sends"][number][1] / 1e9, truth["sends"][number][2] / 1e9
        assert before - EARLY_SECONDS <= told + start <= after + LATE_SECONDS, case.name
    answer = 2 if case.name.startswith("reasoning") else None  # events of reasoning in front of it
    assert (row["answer_s"] is None) == (answer is None), case.name
    if answer is not None:
        _, before, after = truth["sends"][carrying[answer]][:3]
        assert before / 1e9 - EARLY_SECONDS <= row["answer_s"] + start <= after / 1e9 + LATE_SECONDS, case.name
    if row["itl_count"] is not None and not row["coalesced_reads"]:  # all but the first event's have a gap
        assert row["itl_count"] == truth["tokens"] - truth["sends"][carrying[0]][0], case.name
