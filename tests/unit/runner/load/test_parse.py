"""The parser against every segmentation of a stream, and against damaged streams."""

from __future__ import annotations

import http.client
import io
import itertools
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput.runner.load import events as events_module
from goodput.runner.load import spool
from goodput.runner.load.parse import WAITING, Parsed, ResponseParser

ASKED = 6
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
MUTATIONS = 4000


def chunk(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def event(total: int, text: str, finish: str | None = None, usage: bool = True) -> bytes:
    document: dict[str, Any] = {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}
    if usage:
        document["usage"] = {"prompt_tokens": 3, "total_tokens": 3 + total, "completion_tokens": total}
    compact = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return b"data: " + compact.encode() + b"\n\n"


def events(*, usage: bool = True) -> list[bytes]:
    texts = ["é", "", "😀 b", "data: [DONE]", " plain", '"completion_tokens":9']
    rows = [event(n + 1, t, "length" if n == 5 else None, usage) for n, t in enumerate(texts)]
    final = b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 6}}\n\n'
    return [b": hi\n\n", *rows, final, b"data: [DONE]\n\n"]


def chunked(parts: list[bytes]) -> bytes:
    return HEAD + b"".join(chunk(part) for part in parts) + b"0\r\n\r\n"


STREAMS = {
    "chunked": chunked(events()),
    "CR LF": chunked([part.replace(b"\n", b"\r\n") for part in events()]),
    "CR": chunked([part.replace(b"\n", b"\r") for part in events()]),
    "one chunk": chunked([b"".join(events())]),
    "odd chunks": chunked([b"".join(events())[at : at + 7] for at in range(0, len(b"".join(events())), 7)]),
    "no continuous usage": chunked(events(usage=False)),
    "error": chunked([*events()[:3], b'data: {"error": {"message": "no"}}\n\n', b"data: [DONE]\n\n"]),
    "short": chunked([*events()[:3], b"data: [DONE]\n\n"]),
    "trailer": chunked(events())[:-2] + b"X-A: b\r\n\r\n",
    "until close": HEAD.replace(b"Transfer-Encoding: chunked", b"Connection: close") + b"".join(events()),
    "bad chunk": chunked(events()).replace(b"\r\n0\r\n", b"\r\nxyz\r\n0\r\n"),
    "refused": b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\n{}",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\n" + chunked(events()),
}


def parse(pieces: list[bytes], kind: int = spool.ENDED, body: bytes = b"", asked: int = ASKED) -> Parsed:
    """Each piece is a read; its stamp is the position of its end in the stream."""
    parser = ResponseParser(asked)
    position = 0
    for piece in pieces:
        position += len(piece)
        parser.read(piece, position, kernel=True)
    return parser.finish(kind, position + 1, body)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:stop] for start, stop in itertools.pairwise(edges)]


def content(parsed: Parsed) -> tuple[object, ...]:
    """All but the times."""
    return (
        parsed.outcome, parsed.reason, parsed.status, parsed.prompt_tokens, parsed.output_tokens,
        parsed.source, parsed.events, parsed.arrived.total,
    )  # fmt: skip


@given(name=st.sampled_from(sorted(STREAMS)), places=st.lists(st.integers(0, 10**6), max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_segmentation_gives_the_same_record(name: str, places: list[int]) -> None:
    data = STREAMS[name]
    kind = spool.END_OF_FILE if name == "until close" else spool.ENDED
    assert content(parse(cut(data, places), kind)) == content(parse([data], kind))


@given(places=st.lists(st.integers(0, 10**6), max_size=40))
@settings(max_examples=100, deadline=None)
def test_a_token_has_the_stamp_of_the_read_that_completes_its_event(places: list[int]) -> None:
    data = STREAMS["chunked"]
    pieces = cut(data, places)
    ends = [sum(map(len, pieces[: n + 1])) for n in range(len(pieces))]
    parsed = parse(pieces)
    # An event is complete with the second line feed: the byte before its chunk's CR LF.
    complete = [data.index(part) + len(part) for part in events()[1:7]]
    stamps = [next(end for end in ends if end >= position) for position in complete]
    assert parsed.first_ns == stamps[0]
    assert parsed.last_ns == stamps[-1]
    assert parsed.arrived.stamps == sorted(set(stamps))
    assert parsed.arrived.counts == [stamps.count(stamp) for stamp in sorted(set(stamps))]
    assert parsed.arrived.coalesced == sum(1 for stamp in set(stamps) if stamps.count(stamp) > 1)


READS = st.sampled_from(["x", "x", "x", "", "é", "\n", "\x7f", "twice", "lost", "cut"])


@given(kinds=st.lists(st.tuples(READS, st.booleans()), min_size=1, max_size=3 * WAITING))
@settings(max_examples=100, deadline=None)
def test_parsing_many_reads_at_once_changes_nothing(kinds: list[tuple[str, bool]]) -> None:
    reads, count = [(HEAD, True)], 0
    for what, kernel in kinds:
        count += {"twice": 2, "lost": -1}.get(what, 1)
        text = what if len(what) < 2 else "y"
        data = chunk(event(max(count, 0), text))
        reads += [(data[:20], kernel), (data[20:], kernel)] if what == "cut" else [(data, kernel)]
    reads.append((chunk(event(count, "z", "length")) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n", True))

    together, alone = ResponseParser(count), ResponseParser(count)
    alone._state._lessons = 0  # so that every event is read as JSON
    told = []
    for parser in (together, alone):
        for stamp, (data, kernel) in enumerate(reads):
            parser.read(data, stamp, kernel=kernel)
        parsed = parser.finish(spool.ENDED, len(reads), b"")
        arrived = (parsed.arrived.stamps, parsed.arrived.counts, parsed.arrived.coalesced)
        told.append((content(parsed), arrived, parsed.first_ns, parsed.last_ns, parsed.end_ns, parsed.kernel))
    assert told[0] == told[1]


def test_what_the_streams_are() -> None:
    told = {name: parse([data], spool.END_OF_FILE).reason for name, data in STREAMS.items()}
    failures = {"error": "StreamError", "short": "NoFinishReason", "bad chunk": "MalformedChunk", "refused": "Http503"}
    assert told == {name: failures.get(name) for name in STREAMS}


@given(position=st.integers(0, len(STREAMS["chunked"])))
@settings(max_examples=100, deadline=None)
def test_a_stream_cut_off_before_the_terminal_event_is_never_a_success(position: int) -> None:
    data = STREAMS["chunked"]
    parsed = parse([data[:position]] if position else [], spool.END_OF_FILE)
    assert (parsed.outcome == "completed") == (position >= data.index(b"[DONE]\n\n\r\n0") + len(b"[DONE]\n\n"))
    if parsed.outcome != "completed":
        assert parsed.reason in {"Truncated", "ClosedBeforeAnswer"}


def oracle(data: bytes) -> bool:
    """May it be a success? It may lack the end of its framing, or a part of that."""
    end = b"\r\n0\r\n\r\n"
    return any(reading(data + end[at:]) for at in range(len(end) + 1))


def reading(data: bytes) -> bool:
    """An independent reading of the whole response, by the standard library."""

    class Socket:
        def makefile(self, mode: str) -> io.BytesIO:
            assert mode == "rb"
            return io.BytesIO(data)

    response = http.client.HTTPResponse(Socket())  # type: ignore[arg-type]  # only makefile is used
    try:
        response.begin()
        body = response.read()
    except http.client.IncompleteRead as error:
        body = error.partial
    except (http.client.HTTPException, ValueError, OSError):
        return False
    if response.status != 200:
        return False
    tokens, finish, done = 0, False, False
    for block in re.split(rb"(?:\r\n|\n|\r){2}", body):
        fields = [line for line in re.split(rb"\r\n|\n|\r", block) if line.startswith(b"data:")]
        payload = b"\n".join(line[5:].removeprefix(b" ") for line in fields)
        if payload == b"[DONE]":
            done = True
        elif payload.strip():
            try:
                document = json.loads(payload)
            except ValueError:
                return False
            if "error" in document:
                return False
            for choice in document.get("choices") or []:
                finish = finish or choice.get("finish_reason") == "length"
            tokens = (document.get("usage") or {}).get("completion_tokens", tokens)
    return finish and done and tokens == ASKED


def mutated(generator: random.Random) -> bytes:
    data = bytearray(STREAMS[generator.choice(["chunked", "CR LF", "one chunk", "no continuous usage"])])
    for _ in range(generator.randint(1, 3)):
        start = generator.randrange(len(data))
        stop = min(len(data), start + generator.choice([0, 1, 2, 40]))
        dictionary = [
            b"",
            b"\n",
            b"\r\n",
            b"\x00",
            b"0\r\n\r\n",
            b"data: ",
            b'"error":{},',
            b"9",
            b"}",
            bytes(data[:start][-9:]),
        ]
        data[start:stop] = generator.choice(dictionary)
        if generator.random() < 0.1:
            del data[start:]
            break
    return bytes(data)


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_stream_is_no_crash_and_no_false_success(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = random.Random(seed)
    successes = 0
    for _ in range(MUTATIONS // 4):
        data = mutated(generator)
        places = [generator.randrange(len(data) + 1) for _ in range(generator.randrange(6))]
        kind = generator.choice([spool.ENDED, spool.END_OF_FILE, spool.CLOSED])
        body = b"DrainDeadline" if kind == spool.CLOSED else b""
        parsed = parse(cut(data, places), kind, body)
        with monkeypatch.context() as patch:
            patch.setattr("goodput.runner.load.events.LESSONS", 0)  # no shortcut: JSON for each event
            slow = parse(cut(data, places), kind, body)
        assert (content(slow), slow.arrived.stamps) == (content(parsed), parsed.arrived.stamps)
        assert repr(slow.gaps) == repr(parsed.gaps)
        assert (parsed.outcome == "completed") == (parsed.reason is None)
        if parsed.outcome == "completed":
            successes += 1
            assert parsed.first_ns is not None
            assert parsed.output_tokens == ASKED
            assert oracle(data), data
    assert successes  # some damage does no harm, e.g. inside a text


def test_a_text_is_counted_whole_where_there_is_no_usage() -> None:
    stream = chunked(
        [event(n, "ab", "length" if n == 3 else None, usage=False) for n in (1, 2, 3)] + [b"data: [DONE]\n\n"]
    )
    parser = ResponseParser(ASKED, count_tokens=len)
    parser.read(stream, 5, kernel=True)
    parsed = parser.finish(spool.ENDED, 6, b"")
    assert (parsed.outcome, parsed.output_tokens, parsed.source, parsed.gaps) == ("completed", 6, "tokenizer", None)


def test_a_retry_starts_from_nothing() -> None:
    parser = ResponseParser(ASKED)
    parser.read(b"HTTP/1.1 200", 1, kernel=False)
    parser.restart()
    parser.read(STREAMS["chunked"], 2, kernel=True)
    parsed = parser.finish(spool.ENDED, 3, b"")
    assert (parsed.outcome, parsed.first_ns, parsed.kernel) == ("completed", 2, True)


def test_user_stamps_are_known_as_such() -> None:
    parser = ResponseParser(ASKED)
    parser.read(STREAMS["chunked"], 2, kernel=False)
    assert not parser.finish(spool.ENDED, 3, b"").kernel


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (spool.NOT_SENT, b"NoDescriptors", ("not_sent", "NoDescriptors")),
        (spool.BROKEN, spool.BROKEN_BODY.pack(111, spool.STAGE_CONNECT), ("failed", "ConnectRefused")),
        (spool.BROKEN, spool.BROKEN_BODY.pack(110, spool.STAGE_CONNECT), ("failed", "ConnectTimeout")),
        (spool.BROKEN, spool.BROKEN_BODY.pack(113, spool.STAGE_CONNECT), ("failed", "ConnectFailed")),
        (spool.BROKEN, spool.BROKEN_BODY.pack(104, spool.STAGE_EXCHANGE), ("failed", "Reset")),
        (spool.END_OF_FILE, b"", ("failed", "ClosedBeforeAnswer")),
        (spool.CLOSED, b"Stopped", ("incomplete", "Stopped")),
    ],
)
def test_what_ends_without_an_answer(kind: int, body: bytes, expected: tuple[str, str]) -> None:
    parsed = parse([], kind, body)
    assert (parsed.outcome, parsed.reason) == expected
    assert (parsed.first_ns, parsed.last_ns, parsed.output_tokens, parsed.gaps) == (None, None, None, None)


def test_delivery_of_a_stream_whose_total_alone_is_known_is_in_proportion_to_its_text() -> None:
    parsed = parse([STREAMS["no continuous usage"]])
    assert parsed.source == "usage"  # five events with text, six tokens
    assert parsed.delivered(0, 10**9) == 6
    assert parsed.delivered(0, 1) == 0
    assert replace(parsed, output_tokens=None).delivered(0, 10**9) == 5


def delta(total: int, finish: str | None = None, **said: str) -> bytes:
    """An event of a chat, in vLLM's field order."""
    document = {
        "choices": [{"index": 0, "delta": said, "finish_reason": finish}],
        "usage": {"prompt_tokens": 3, "total_tokens": 3 + total, "completion_tokens": total},
    }
    return b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n"


def stamped(*parts: bytes, asked: int = ASKED) -> Parsed:
    """One read for each event, the n-th with stamp n."""
    parser = ResponseParser(asked)
    reads = [HEAD, *map(chunk, parts), chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"]
    for stamp, data in enumerate(reads):
        parser.read(data, stamp, kernel=True)
    return parser.finish(spool.ENDED, len(reads), b"")


ROLE = delta(0, role="assistant", content="")


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize(
    "said", [{}, {"role": "assistant"}]
)  # a role in every event teaches the template with the first
def test_the_answer_begins_behind_its_reasoning(field: str, said: dict[str, str]) -> None:
    thoughts = [delta(total, **said, **{field: "hm"}) for total in (1, 2, 3)]
    answer = [delta(total, "length" if total == ASKED else None, **said, content="a") for total in (4, 5, 6)]
    parsed = stamped(ROLE, *thoughts, *answer)
    assert parsed.outcome == "completed"
    assert (parsed.first_ns, parsed.answer_ns, parsed.last_ns) == (2, 5, 7)


def test_an_event_with_both_begins_the_answer() -> None:
    both = delta(2, reasoning="so", content="a")
    rest = [delta(total, "length" if total == ASKED else None, content="a") for total in range(3, ASKED + 1)]
    assert stamped(delta(1, reasoning="hm"), both, *rest).answer_ns == 2


def test_a_call_is_an_answer() -> None:
    calls = b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0}]},"finish_reason":null}]}\n\n'
    thoughts = [delta(total, reasoning="hm") for total in range(1, ASKED)]
    assert stamped(*thoughts, calls, delta(ASKED, "tool_calls")).answer_ns == ASKED


@pytest.mark.parametrize("field", ["reasoning", "content"])
def test_without_reasoning_or_without_an_answer_there_is_no_such_time(field: str) -> None:
    tokens = [delta(n, "length" if n == ASKED else None, **{field: "a"}) for n in range(1, ASKED + 1)]
    parsed = stamped(ROLE, *tokens)
    assert (parsed.outcome, parsed.first_ns, parsed.answer_ns) == ("completed", 2, None)


def test_an_empty_text_of_another_field_is_not_taken_for_the_answers() -> None:
    def echo(total: int, text: str) -> bytes:
        return delta(total, role="assistant").replace(b'"finish', b'"echo":{"text":"%b"},"finish' % text.encode())

    parsed = stamped(delta(1, reasoning="hm"), echo(2, ""), echo(3, "hi"), delta(ASKED, "length", reasoning="hm"))
    assert (parsed.outcome, parsed.answer_ns) == ("completed", None)


def test_a_request_that_is_sent_again_begins_anew() -> None:
    parser = ResponseParser(ASKED)
    parser.read(HEAD + chunk(delta(1, reasoning="hm")) + chunk(delta(2, content="a")), 1, kernel=True)
    parser.restart()
    parser.read(HEAD + chunk(delta(1, content="a")), 7, kernel=True)
    assert parser.finish(spool.ENDED, 8, b"").answer_ns is None


def read_as_json(parsing: Callable[[], Parsed], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many events of a stream were parsed by themselves; the record is the same as if all were."""
    parsed: list[bytes] = []

    def counted(data: bytes) -> dict[str, Any] | None:
        parsed.append(data)
        return json.loads(data)  # type: ignore[no-any-return]

    monkeypatch.setattr(events_module, "_object", counted)
    quick, count = parsing(), len(parsed)
    monkeypatch.setattr(events_module, "LESSONS", 0)
    slow = parsing()
    assert replace(quick, arrived=slow.arrived, gaps=slow.gaps) == slow
    assert (quick.arrived.stamps, quick.arrived.counts) == (slow.arrived.stamps, slow.arrived.counts)
    assert len(parsed) > 10 * count
    return count


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "content"])
def test_a_chat_is_parsed_as_quickly_as_a_completion(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first event has a role, which the others have not; then the field may change once. Each form is tried."""
    count, thoughts = 200, 100
    said = [delta(n, **{field if n <= thoughts else "content": f"w{n}"}) for n in range(1, count)]
    last = delta(count, "length", content="w")
    assert read_as_json(lambda: stamped(ROLE, *said, last, asked=count), monkeypatch) <= 7
