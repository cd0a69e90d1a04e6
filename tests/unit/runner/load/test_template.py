from __future__ import annotations

import json
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.runner.load.chunks import ChunkDecoder
from goodput.runner.load.events import StreamState
from goodput.runner.load.sse import SseDecoder
from goodput.runner.load.template import CommonReads, Plain, Template

CHAT = (
    '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%s},'
    '"logprobs":null,"finish_reason":null,"token_ids":null}],'
    '"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}}'
)


def event(text: str = "x", prompt: int = 3, total: int = 1, *, escaped: bool = True) -> bytes:
    return (CHAT % (json.dumps(text, ensure_ascii=escaped), prompt, prompt + total, total)).encode()


def learnt() -> Template:
    template = Template.learn(event(), Plain("x", 3, 1))
    assert template is not None
    return template


@given(text=st.text(), prompt=st.integers(0, 10**8), total=st.integers(0, 10**8))
def test_an_event_that_fits_says_what_json_says(text: str, prompt: int, total: int) -> None:
    plain = learnt().match(event(text, prompt, total))
    simple = text.isascii() and text.isprintable() and not set(text) & {'"', "\\"}
    assert plain == (Plain(text, prompt, total) if simple else None)


@given(position=st.integers(0, len(event()) - 1), byte=st.integers(0, 255))
def test_a_change_anywhere_is_seen_or_means_the_same(position: int, byte: int) -> None:
    data = bytearray(event())
    data[position] = byte
    plain = learnt().match(bytes(data))
    if plain is not None:
        document = json.loads(bytes(data))
        usage = document["usage"]
        assert plain.text == document["choices"][0]["delta"]["content"]
        assert (plain.prompt_tokens, plain.output_tokens) == (usage["prompt_tokens"], usage["completion_tokens"])
        assert document["choices"][0]["finish_reason"] is None


def read(data: bytes) -> bytes:
    payload = b"data: " + data + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(payload), payload)


TEXTS = st.text() | st.sampled_from(["x", " word", "", "\n", '"\\"', "é", "😀"])
PUT = (
    st.binary(max_size=3)
    | st.text(max_size=2).map(str.encode)
    | st.sampled_from([b"\n", b"\r\n", b"\n\n", b'"', b"\\", b"0", b"data: ", read(event())])
)
Said = tuple[bool, int, int]  # whether there is a text; prompt and output tokens


def said(reads: list[bytes]) -> list[Said]:
    """What the first of them say, all told at once."""
    found = CommonReads(learnt()).match(reads)
    return list(zip(map(bool, found.texts), map(int, found.prompt_tokens), map(int, found.output_tokens), strict=True))


def slowly(data: bytes) -> Said:
    """What one read says, by the decoders: it is one event and nothing else."""
    chunks, events = ChunkDecoder(), SseDecoder()
    (only,) = events.feed(chunks.feed(data))
    assert chunks.between
    assert events.between
    assert not only.name
    document = json.loads(only.data)
    (choice,) = document["choices"]
    assert choice["finish_reason"] is None
    return bool(choice["delta"]["content"]), document["usage"]["prompt_tokens"], document["usage"]["completion_tokens"]


@given(rows=st.lists(st.tuples(TEXTS, st.integers(0, 10**8), st.integers(0, 10**8)), max_size=5), escaped=st.booleans())
def test_common_reads_say_what_their_events_say(rows: list[tuple[str, int, int]], escaped: bool) -> None:
    reads = [read(event(*row, escaped=escaped)) for row in rows]
    common = list(takewhile(lambda data: b"\x7f" not in data, reads))
    assert said(reads) == [slowly(data) for data in common]


@given(which=st.integers(0, 2), position=st.integers(0, len(read(event())) - 1), cut=st.integers(0, 3), put=PUT)
def test_a_damaged_read_is_left_to_the_decoders_or_means_what_they_say(
    which: int, position: int, cut: int, put: bytes
) -> None:
    reads = [read(event("a", 3, 1)), read(event("b", 3, 2)), read(event("c", 3, 3))]
    reads[which] = reads[which][:position] + put + reads[which][position + cut :]
    told = said(reads)
    if not {0, 1} & set(reads[which]):  # these two keep reads apart: where one is in a read, none is told
        assert len(told) >= which
    assert told == [slowly(data) for data in reads[: len(told)]]


def test_no_bytes_move_from_one_read_to_the_next() -> None:
    whole = read(event()) * 2
    for place in range(1, len(whole)):
        if place != len(whole) // 2:
            assert said([whole[:place], whole[place:]]) == []


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices":[]}',
        event().replace(b'"logprobs":null', b'"text":"y"'),  # two texts
        event().replace(b'"total_tokens":4', b'"total_tokens":"4"'),
        b'{"usage":{"prompt_tokens":3,"total_tokens":4,"completion_tokens":1},"choices":[{"text":"x"}]}',
    ],
)
def test_what_could_be_mistaken_is_not_learnt(data: bytes) -> None:
    assert Template.learn(data, Plain("x", 3, 1)) is None


def test_another_meaning_is_not_learnt() -> None:
    assert Template.learn(event(), Plain("y", 3, 1)) is None
    assert Template.learn(event(), Plain("x", 3, 2)) is None


@pytest.mark.parametrize("total", [1, 2, 5])
def test_the_shortcut_counts_as_the_long_way_does(total: int) -> None:
    stream = [event("a", 3, 1), event("", 3, total), event("b", 3, 3), event("é", 3, 4)]
    short, long = StreamState(), StreamState()
    told = [short.take(data, b"") for data in stream]
    assert told == [long.take(data.replace(b'":', b'": '), b"") for data in stream]
    assert (short.text, short.output_tokens, short.inconsistent) == (long.text, long.output_tokens, long.inconsistent)
    assert (short.continuous, short.events) == (long.continuous, long.events)
