"""The catalogue's streams that are right, in every shape that a server or a network may give them."""

from __future__ import annotations

from collections.abc import Iterator

from bench.golden.build import END, Maker, Pieces, kept, one_chunk, rewritten, segments
from bench.golden.render import CHUNKED, STREAM_TYPE, Piece, boundaries, cut, event, framed, head
from bench.golden.script import Case, Send, Wait

WIDE = "é😀"


def successes(make: Maker) -> Iterator[Case]:
    """All of them."""
    yield from _tokens_and_events(make)
    yield from _usage(make)
    yield from _segments(make)
    yield from _events(make)
    yield from _http(make)
    yield from _time(make)


def _tokens_and_events(make: Maker) -> Iterator[Case]:
    asked, final = make.asked, make.token(make.asked, finish="length", carries=make.asked)
    yield make.kept("plain", make.plain())
    pairs = [make.token(2, "xx", carries=2), make.token(asked, "x", "length", carries=asked - 2)]
    yield make.kept("several tokens per chunk", [*pairs, END])
    yield make.kept("all tokens in one chunk", [final, END])
    yield make.kept("first token has no text", [make.token(1, ""), *make.tokens()[1:], END])
    yield make.kept("a token in the middle has no text", [make.token(1), make.token(2, ""), *make.tokens()[2:], END])
    yield make.kept("last token has no text", [*make.texts(""), END])
    yield make.kept("no token has text", [*make.texts(*[""] * asked), END])
    yield make.kept("white space tokens", [*make.texts("\n\n", " ", "\t"), END])
    yield make.kept(
        "texts that look like the protocol", [*make.texts("data: [DONE]\n\n", '{"error": "x"}', "\r\n0\r\n\r\n"), END]
    )
    yield make.kept("a long event", [*make.texts("word " * 20_000, "x"), END])
    yield make.kept("finish reason stop", [*make.tokens(last="stop"), END])
    late = make.token(asked, "", "length", carries=0)
    yield make.kept("finish reason behind the last token", [*make.tokens(last=None), late, END])
    if make.form.chat:
        yield from _deltas(make)
    else:
        empty = make.token(0, "", carries=0)
        yield make.kept("an empty event first", [empty, *make.plain()])
        yield make.kept("empty events between", [make.token(1), make.token(1, "", carries=0), *make.tokens()[1:], END])


def _deltas(make: Maker) -> Iterator[Case]:
    asked, role = make.asked, make.delta(0, 0, role="assistant", content="")
    yield make.kept("role chunk first", [role, *make.plain()])
    yield make.kept("role chunk without content", [make.delta(0, 0, role="assistant"), *make.plain()])
    yield make.kept(
        "role and the first token in one", [make.delta(1, 1, role="assistant", content="x"), *make.plain()[1:]]
    )
    late = make.delta(1, 0, role="assistant", content="")
    yield make.kept("role chunk late", [make.token(1), late, *make.plain()[1:]])
    yield make.kept("empty content between", [make.token(1), make.delta(1, 0, content=""), *make.plain()[1:]])
    yield make.kept("content null between", [make.token(1), make.delta(1, 0, content=None), *make.plain()[1:]])
    for field in ("reasoning_content", "reasoning", "refusal"):
        thought = [make.delta(total, 1, **{field: "x"}) for total in (1, 2)]
        yield make.kept(f"{field} first", [role, *thought, *make.plain()[2:]])
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}}
    calls = [make.delta(total, 1, tool_calls=[call]) for total in range(1, asked)]
    yield make.kept("tool calls", [role, *calls, make.delta(asked, 1, "tool_calls"), END])


def _usage(make: Maker) -> Iterator[Case]:
    final, bare = make.closing(), make.tokens(counted=False)
    yield make.kept("usage chunk with null choices", [*make.tokens(), make.closing(choices=None), END])
    yield make.kept("usage at the end only", [*bare, final, END])
    yield make.kept("usage with the finish reason only", [*bare[:-1], make.token(make.asked, finish="length"), END])
    yield make.kept("no usage", [*bare, END])
    yield make.kept(
        "usage null in every event", [*rewritten(bare, b'"choices"', b'"usage":null,"choices"'), final, END]
    )
    details = b'"prompt_tokens_details":null,"prompt_tokens"'
    yield make.kept("null and unknown fields", rewritten(make.plain(), b'"prompt_tokens"', details))


def _segments(make: Maker) -> Iterator[Case]:
    plain = make.plain()
    wide = [make.token(1), make.token(2, WIDE), *make.tokens()[2:], END]
    wire, wire_wide, edges = framed(plain), framed(wide), boundaries(plain)
    yield make.at_once("all in one segment", plain)
    yield make.success("head and first event in one segment", [*cut(wire, edges[1:]), "keep"], plain)
    yield make.success("two events in a segment", [*cut(wire, edges[::2]), "keep"], plain)
    yield make.success("byte by byte", [*cut(wire, range(len(wire.data)), 0.0), "keep"], plain)
    inside = wire_wide.data.index(WIDE.encode())
    yield make.success("split inside a UTF-8 character", [*cut(wire_wide, [inside + 1, inside + 4]), "keep"], wide)
    yield make.success("split inside the chunk size", [*cut(wire, [edge + 1 for edge in edges]), "keep"], plain)
    yield make.success("split between CR and LF", [*cut(wire, [edge - 1 for edge in edges]), "keep"], plain)
    yield make.success("split between the line feeds", [*cut(wire, [edge - 3 for edge in edges]), "keep"], plain)
    yield make.success(
        "split before the last chunk", [*cut(wire, [len(wire.data) - 5, len(wire.data) - 3]), "keep"], plain
    )
    yield make.success("split inside the head", [*cut(wire, [9, 30, len(CHUNKED) - 1, len(CHUNKED)]), "keep"], plain)
    stream = b"".join(piece.data for piece in wide)
    chunks = [Piece(stream[start : start + 7]) for start in range(0, len(stream), 7)]
    odd, at, marks = framed(chunks), 0, []
    ends = boundaries(chunks)
    for piece in wide:
        at += len(piece.data)
        marks += [(ends[-(-at // 7)] - 2, piece.tokens)] if piece.tokens else []
    yield make.success("chunks of seven bytes", [*cut(odd._replace(marks=tuple(marks)), ()), "keep"], wide)


def _events(make: Maker) -> Iterator[Case]:
    plain = make.plain()
    yield make.at_once("CR LF", rewritten(plain, b"\n", b"\r\n"))
    yield make.kept("CR LF in pieces", rewritten(plain, b"\n", b"\r\n"))
    yield make.at_once("CR", rewritten(plain, b"\n", b"\r"))
    mixed = [*rewritten(plain[:1], b"\n", b"\r\n"), *rewritten(plain[1:2], b"\n", b"\r"), *plain[2:]]
    yield make.kept("mixed line ends", mixed)
    yield make.at_once("no space after data:", rewritten(plain, b"data: ", b"data:"))
    yield make.at_once("multi-line data", rewritten(plain, b',"usage"', b',\ndata: "usage"'))
    yield make.at_once(
        "event, id and retry lines", rewritten(plain, b"data: {", b"event: message\nid: 7\nretry: 10\ndata: {")
    )
    yield make.at_once("byte order mark", [Piece(b"\xef\xbb\xbf" + plain[0].data, 1), *plain[1:]])
    comments = [Piece(b": hello\n\n"), Piece(b":\n\n")]
    yield make.kept("comments and pings", [*comments, plain[0], Piece(b": ping\n\n"), *plain[1:]])
    pings = [Piece(b"event: ping\n\n"), Piece(event({"type": "ping"}))]
    yield make.kept("ping events", [pings[1], plain[0], *pings, *plain[1:]])
    yield make.kept("empty data", [Piece(b"data:\n\n"), plain[0], Piece(b"data: \n\n"), *plain[1:]])


def _http(make: Maker) -> Iterator[Case]:
    plain = make.plain()
    wire, stream = framed(plain), b"".join(piece.data for piece in plain)
    body = wire.data.removeprefix(CHUNKED)
    extended = _sized(plain, b"%X;a=b\r\n")
    yield make.success(
        "chunk extensions and trailers", [*extended[:-1], Send(b"000;x\r\nX-T: 1\r\nX-U: 2\r\n\r\n"), "keep"], plain
    )
    yield make.success("sizes with zeros in front", [*_sized(plain, b"000%x\r\n"), "keep"], plain)
    lower = head("200 OK", None, "content-type: TEXT/Event-Stream", "TRANSFER-ENCODING: Chunked", *["X-Y: z"] * 40)
    yield make.success("other head", [Send(lower), Send(body, make.asked), "keep"], plain)
    length = head("200 OK", STREAM_TYPE, f"Content-Length: {len(stream)}")
    yield make.success("content length", [*segments(plain, length, b"", chunked=False), "keep"], plain)
    closing = head("200 OK", STREAM_TYPE, "Connection: close")
    yield make.success("until close", [*segments(plain, closing, b"", chunked=False), "close"], plain)
    old = head("200 OK", STREAM_TYPE, version="1.0")
    yield make.success("HTTP/1.0", [*segments(plain, old, b"", chunked=False), "close"], plain)
    yield make.success("100 continue first", [Send(b"HTTP/1.1 100 Continue\r\n\r\n"), Wait(0.003), *kept(plain)], plain)
    says = head("200 OK", STREAM_TYPE, "Transfer-Encoding: chunked", "Connection: close")
    yield make.success("answer says close", [*segments(plain, says), "close"], plain)
    yield make.success("closed after the answer, unsaid", [*segments(plain), "close"], plain)
    yield make.success("a kept connection is closed when used", ["stale", *kept(plain)], plain)
    yield make.success("closed behind [DONE]", [*segments(plain, end=b""), "close"], plain)
    yield make.success("reset behind [DONE]", [*segments(plain, end=b""), Wait(0.05), "reset"], plain)
    yield make.success("hang behind [DONE]", [*segments(plain, end=b""), "hang"], plain)


def _time(make: Maker) -> Iterator[Case]:
    plain = make.plain()
    yield make.success("slow first token", [Send(CHUNKED), Wait(0.3), *kept(plain)[2:]], plain)
    rest = kept(plain)
    yield make.success("slow in the middle", [*rest[:4], Wait(0.3), *rest[4:]], plain)
    wire = one_chunk(plain)
    yield make.success("trickle", [*cut(wire, range(0, len(wire.data), 40), 0.005), "keep"], plain)


def _sized(pieces: Pieces, size: bytes) -> list[Send]:
    """Chunks with sizes of that form, the last chunk included, each in a send; the head is the first."""
    chunks = [Send(size % len(piece.data) + piece.data + b"\r\n", piece.tokens) for piece in pieces]
    return [Send(CHUNKED), *chunks, Send(size % 0 + b"\r\n")]
