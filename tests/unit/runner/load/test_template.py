from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.runner.load.chunks import ChunkDecoder
from goodput.runner.load.events import StreamState
from goodput.runner.load.sse import SseDecoder
from goodput.runner.load.template import CommonRead, Plain, Template

CHAT = (
    '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%s},'
    '"logprobs":null,"finish_reason":null,"token_ids":null}],'
    '"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}}'
)


def event(text: str = "x", prompt: int = 3, total: int = 1) -> bytes:
    return (CHAT % (json.dumps(text), prompt, prompt + total, total)).encode()


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


@given(text=st.text(), prompt=st.integers(0, 10**8), total=st.integers(0, 10**8))
def test_a_common_read_says_what_its_event_says(text: str, prompt: int, total: int) -> None:
    data = event(text, prompt, total)
    found = CommonRead(learnt()).match(read(data))
    plain = learnt().match(data)
    assert (found is None) == (plain is None)
    if found is not None:
        assert plain == Plain(found[1].decode(), int(found[2]), int(found[3]))


@given(
    position=st.integers(0, len(read(event())) - 1),
    cut=st.integers(0, 3),
    put=st.binary(max_size=3) | st.sampled_from([b"\n", b"\r\n", b"\n\n", b'"', b"0", b"data: "]),
)
def test_a_damaged_common_read_is_left_to_the_decoders_or_means_what_they_say(
    position: int, cut: int, put: bytes
) -> None:
    data = read(event())
    data = data[:position] + put + data[position + cut :]
    found = CommonRead(learnt()).match(data)
    if found is not None:
        chunks, events = ChunkDecoder(), SseDecoder()
        (only,) = events.feed(chunks.feed(data))
        assert chunks.between
        assert events.between
        assert learnt().match(only.data) == Plain(found[1].decode(), int(found[2]), int(found[3]))


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
