"""The layers below the parser: heads, chunks, events, gaps."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.runner.load.chunks import ChunkDecoder
from goodput.runner.load.http_head import HeadError, parse_head
from goodput.runner.load.sse import Event, SseDecoder
from goodput.runner.load.tokens import Arrived


def chunk(payload: bytes) -> bytes:
    return b"%x ;x=y\r\n%b\r\n" % (len(payload), payload)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:stop] for start, stop in itertools.pairwise(edges)]


def test_gaps_are_divided_over_the_tokens_of_a_read() -> None:
    arrived = Arrived()
    for stamp, tokens in ((100, 2), (160, 3), (170, 1)):
        arrived.next_read()
        arrived.add(stamp, tokens)
    gaps = arrived.gaps()
    assert gaps is not None
    assert (gaps.total_ns, gaps.tokens, gaps.highest_ns) == (70, 4, 20)
    assert gaps.each_ns.tolist() == [20, 10]
    assert gaps.counts.tolist() == [3, 1]
    assert arrived.within(100, 160) == 2
    assert arrived.within(160, 170) == 3
    assert arrived.within(0, 100) == arrived.within(171, 900) == 0


@given(
    payloads=st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    places=st.lists(st.integers(0, 10**6), max_size=30),
)
def test_chunks_come_apart_as_they_were_put_together(payloads: list[bytes], places: list[int]) -> None:
    data = b"".join(chunk(part) for part in payloads) + b"00\r\nA: b\r\n\r\n"
    decoder = ChunkDecoder()
    assert b"".join(decoder.feed(piece) for piece in cut(data, places)) == b"".join(payloads)
    assert decoder.complete
    assert decoder.error is None
    assert decoder.feed(b"x") == b""
    assert decoder.error == "bytes behind the last chunk"


@given(data=st.binary(max_size=200), places=st.lists(st.integers(0, 10**6), max_size=20))
def test_events_do_not_depend_on_the_pieces(data: bytes, places: list[int]) -> None:
    text = data.replace(b"\x01", b"data:").replace(b"\x02", b"\n\n").replace(b"\x03", b"\r")
    whole, pieces = SseDecoder(), SseDecoder()
    expected = [*whole.feed(text), *whole.flush()]
    got = [event_ for piece in cut(text, places) for event_ in pieces.feed(piece)]
    assert [*got, *pieces.flush()] == expected
    assert pieces.junk == whole.junk


def test_events_as_the_standard_has_them() -> None:
    decoder = SseDecoder()
    stream = (
        b"\xef\xbb\xbf:c\ndata\n\ndata: a\ndata:b\n\nevent: e\ndata:  c\nid: 1\n\nevent: lost\n\ndata: d\r\rdata: e"
    )
    assert decoder.feed(stream) == [
        Event(b"", b""),
        Event(b"a\nb", b""),
        Event(b" c", b"e"),
        Event(b"d", b""),
    ]
    assert decoder.flush() == [Event(b"e", b"")]


@pytest.mark.parametrize(
    "block",
    [b"", b"HTTP/2 200 OK", b"HTTP/1.1 20 OK", b"HTTP/1.1 200 OK\r\nno colon", b"HTTP/1.1 200 OK\r\n a: folded",
     b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2", b"HTTP/1.1 200 OK\r\nContent-Length: -1"],
)  # fmt: skip
def test_heads_that_could_be_misunderstood_are_refused(block: bytes) -> None:
    with pytest.raises(HeadError):
        parse_head(block)


def test_heads() -> None:
    head = parse_head(
        b"HTTP/1.1 200\r\nCONTENT-type: Text/Event-Stream ; charset=x\r\ntransfer-encoding: gzip, Chunked"
    )
    assert (head.status, head.chunked, head.keep, head.content_type) == (200, True, True, "text/event-stream")
    assert not parse_head(b"HTTP/1.0 200 OK\r\nContent-Length: 3").keep
    assert parse_head(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive").keep
    assert not parse_head(b"HTTP/1.1 200 OK").keep  # ends with the connection
    assert parse_head(b"HTTP/1.1 204 No Content").length == 0
