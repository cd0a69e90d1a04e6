"""The catalogue's answers that no client may call a success."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator

from bench.golden.build import END, ERROR, FLAT_ERROR, Maker, response, segments
from bench.golden.render import CHUNKED, LAST_CHUNK, STREAM_TYPE, Piece, chunk, event, framed, head
from bench.golden.routes import ELSEWHERE
from bench.golden.script import Case, Send, Wait

JSON = "application/json"
NO = b'{"error":{"message":"no","type":"error","code":null}}'
REFUSALS = {
    "400": "400 Bad Request",
    "401": "401 Unauthorized",
    "403": "403 Forbidden",
    "404": "404 Not Found",
    "422": "422 Unprocessable Entity",
    "429": "429 Too Many Requests",
    "500": "500 Internal Server Error",
    "503": "503 Service Unavailable",
}


def failures(make: Maker) -> Iterator[Case]:
    """All of them."""
    yield from _statuses(make)
    yield from _no_streams(make)
    yield from _errors_inside(make)
    yield from _cut_off(make)
    yield from _no_end(make)
    yield from _lengths(make)
    yield from _framing(make)
    yield from _hangs(make)


def _statuses(make: Maker) -> Iterator[Case]:
    for name, status in REFUSALS.items():
        more = ["Retry-After: 0"] if name in {"429", "503"} else []
        yield make.failure(name, response(status, JSON, NO, *more))
    page = b"<html><body>bad gateway</body></html>"
    yield make.failure("502 with a page", response("502 Bad Gateway", "text/html", page))
    path = "/v1/chat/completions" if make.form.chat else "/v1/completions"
    for status in ("302 Found", "307 Temporary Redirect"):
        leads = f"Location: {ELSEWHERE}{path}"
        yield make.failure(f"redirect {status[:3]}", response(status, None, b"", leads))
    yield make.failure("204", [Send(head("204 No Content", None)), "keep"])
    wire = framed(make.plain()).data.replace(b"200 OK", b"500 Internal Server Error")
    yield make.failure("500 with a whole stream", [Send(wire, make.asked), "keep"], make.plain())


def _no_streams(make: Maker) -> Iterator[Case]:
    stream = b"".join(piece.data for piece in make.plain())
    yield make.failure("HTML 200", response("200 OK", "text/html", b"<html>hello</html>"))
    yield make.failure("JSON error 200", response("200 OK", JSON, NO))
    document = make.form.document([make.form.choice("x", "length")], make.form.usage(make.asked))
    yield make.failure("JSON answer 200, no stream", response("200 OK", JSON, json.dumps(document).encode()))
    yield make.failure("empty 200", response("200 OK", None, b""))
    yield make.failure(
        "no content type", [Send(head("200 OK", None, f"Content-Length: {len(stream)}") + stream), "keep"]
    )
    yield make.failure("empty stream", [Send(CHUNKED + LAST_CHUNK), "keep"])
    yield make.kept("comments only", [Piece(b": hello\n\n")] * 3, good=False)
    yield make.kept("[DONE] only", [END], good=False)
    packed = {"gzip": gzip.compress(stream), "deflate": zlib.compress(stream)}
    for coding, body in packed.items():
        yield make.failure(
            f"{coding}, not asked for", response("200 OK", STREAM_TYPE, body, f"Content-Encoding: {coding}")
        )


def _errors_inside(make: Maker) -> Iterator[Case]:
    two, plain = make.tokens(2, last=None), make.plain()
    named = Piece(b"event: error\ndata: {}\n\n")
    detail = Piece(event({"detail": "no"}))
    both = make.form.document([make.form.choice("x", "length")], make.form.usage(make.asked), error={"message": "no"})
    yield make.kept("error first", [ERROR, END], good=False)
    yield make.kept("error after tokens", [*two, ERROR, END], good=False)
    yield make.kept("flat error after tokens", [*two, FLAT_ERROR, END], good=False)
    yield make.kept("flat error without [DONE]", [*two, FLAT_ERROR], good=False)
    yield make.kept("error as a text", [*two, Piece(event({"error": "no"})), END], good=False)
    yield make.kept("error as detail", [*two, detail, END], good=False)
    yield make.kept("event: error", [*two, named, END], good=False)
    yield make.kept("error behind the finish reason", [*plain[:-1], ERROR, END], good=False)
    yield make.kept("flat error behind the finish reason", [*plain[:-1], FLAT_ERROR, END], good=False)
    yield make.kept("error behind [DONE]", [*plain, ERROR], good=False)
    yield make.kept("error, then all tokens", [ERROR, *plain], good=False)
    yield make.kept(
        "error beside choices", [*make.tokens(make.asked - 1, last=None), Piece(event(both)), END], good=False
    )
    yield make.failure("error, then close", [*segments([*two, ERROR], end=b""), "close"], two)
    yield make.failure("error, then hang", [*segments([*two, ERROR], end=b""), "hang"], two)
    yield make.kept("bare JSON error line", [*make.tokens(), Piece(NO + b"\n\n"), END], good=False)


def _cut_off(make: Maker) -> Iterator[Case]:
    two, tokens = make.tokens(2, last=None), make.tokens()
    closing = head("200 OK", STREAM_TYPE, "Connection: close")
    wide = make.token(3, "é").data
    part = [*segments(two, end=b"%x\r\n" % len(wide) + wide[: wide.index("é".encode()) + 1])]
    yield make.failure("close before the head", ["close"])
    yield make.failure("close inside the head", [Send(CHUNKED[:40]), "close"])
    yield make.failure("close behind the head", [Send(CHUNKED), "close"])
    yield make.failure("close after tokens", [*segments(two, end=b""), "close"], two)
    yield make.failure("close inside a UTF-8 character", [*part, "close"], two)
    yield make.failure("close inside a chunk size", [*segments(two, end=b"4"), "close"], two)
    yield make.failure("close before the finish reason", [*segments(tokens[:-1], end=b""), "close"], tokens[:-1])
    yield make.failure("close before [DONE]", [*segments(tokens, end=b""), "close"], tokens)
    short = [*segments(two, closing, b"", chunked=False), "close"]
    yield make.failure("until close, after tokens", short, two)
    yield make.failure("until close, before [DONE]", [*segments(tokens, closing, b"", chunked=False), "close"], tokens)
    long = head("200 OK", STREAM_TYPE, "Content-Length: 99999")
    yield make.failure("content length too long", [*segments(tokens, long, b"", chunked=False), "close"], tokens)
    yield make.failure("reset before the head", ["reset"])
    yield make.failure("reset after tokens", [*segments(two, end=b""), Wait(0.05), "reset"], two)
    yield make.failure("reset before [DONE]", [*segments(tokens, end=b""), Wait(0.05), "reset"], tokens)


def _no_end(make: Maker) -> Iterator[Case]:
    tokens, endless = make.tokens(), make.tokens(last=None)
    yield make.kept("no [DONE]", [*tokens, make.closing()], good=False)
    yield make.kept("no [DONE], no usage", make.tokens(counted=False), good=False)
    yield make.kept("no finish reason", [*endless, make.closing(), END], good=False)
    yield make.kept("no finish reason, no [DONE]", endless, good=False)
    yield make.kept("abort", [*make.tokens(2, last="abort"), make.closing(2), END], good=False)
    yield make.kept("abort at the asked length", [*make.tokens(last="abort"), make.closing(), END], good=False)
    yield make.kept("content filter", [*make.tokens(last="content_filter"), END], good=False)
    yield make.kept("finish reason error", [*make.tokens(last="error"), END], good=False)


def _lengths(make: Maker) -> Iterator[Case]:
    asked = make.asked
    down = [make.token(1), make.token(3, carries=2), make.token(2, carries=0), *make.tokens()[3:], END]
    for name, count in (("one too few", asked - 1), ("half", asked // 2), ("one too many", asked + 1)):
        yield make.kept(f"{name}", [*make.tokens(count, last="stop"), make.closing(count), END], good=False)
        bare = make.tokens(count, last="stop", counted=False)
        yield make.kept(f"{name}, usage at the end", [*bare, make.closing(count), END], good=False)
        yield make.kept(f"{name}, no usage", [*bare, END], good=False)
    yield make.kept("no token", [make.token(0, "", "length", carries=0), make.closing(0), END], good=False)
    yield make.kept("closing usage too large", [*make.tokens(), make.closing(asked + 5), END], good=False)
    yield make.kept("closing usage too small", [*make.tokens(), make.closing(asked - 1), END], good=False)
    yield make.kept("closing usage zero", [*make.tokens(), make.closing(0), END], good=False)
    yield make.kept("usage goes down", down, good=False)
    bare = make.tokens(counted=False)
    yield make.kept("usage at the end too large", [*bare, make.closing(asked + 5), END], good=False)
    yield make.kept("usage at the end too small", [*bare, make.closing(asked - 1), END], good=False)


def _framing(make: Maker) -> Iterator[Case]:
    plain, one = make.plain(), make.tokens(1, last=None)
    stream = b"".join(piece.data for piece in plain)
    begin = framed(one, end=b"").data
    lying = b"5\r\n" + plain[1].data + b"\r\n" + LAST_CHUNK
    yield make.failure("chunk longer than it says", [Send(begin + lying, 1), "close"], one)
    yield make.failure("chunk size no number", [Send(CHUNKED + b"zz\r\n" + stream + b"\r\n" + LAST_CHUNK), "close"])
    yield make.failure("bytes behind the last chunk", [Send(framed(plain).data + b"oops", make.asked), "close"], plain)
    short = head("200 OK", STREAM_TYPE, "Content-Length: 20")
    yield make.failure("content length too short", [Send(short + stream), "close"])
    twice = head("200 OK", STREAM_TYPE, "Content-Length: 5", "Content-Length: 6")
    yield make.failure("two content lengths", [Send(twice + stream), "close"])
    yield make.failure("not HTTP", [Send(b"220 mail.example ESMTP\r\n\r\n"), "close"])
    yield make.failure("header line without a name", [Send(head("200 OK", STREAM_TYPE, ": x") + stream), "close"])
    yield make.kept("event no JSON", [*plain[:-1], Piece(b"data: {oops\n\n"), END], good=False)
    yield make.kept("event no object", [*plain[:-1], Piece(b"data: [1]\n\n"), END], good=False)
    yield make.kept("a line of HTML", [plain[0], Piece(b"<html>\n\n"), *plain[1:]], good=False)
    broken = Piece(plain[1].data.replace(b'"x"', b'"\xff"'), 1)
    yield make.kept("text that is no UTF-8", [plain[0], broken, *plain[2:]], good=False)


def _hangs(make: Maker) -> Iterator[Case]:
    two = make.tokens(2, last=None)
    pings = [Piece(b": ping\n\n")]
    slow = [step for _ in range(100) for step in (Send(chunk(pings[0].data)), Wait(0.2))]
    tokens = make.tokens()
    yield make.failure("hang before the head", ["hang"])
    yield make.failure("hang inside the head", [Send(CHUNKED[:40]), "hang"])
    yield make.failure("hang before the first token", [Send(CHUNKED), "hang"])
    yield make.failure("hang before the first token, with pings", [Send(CHUNKED), *slow, "hang"])
    yield make.failure("hang after tokens", [*segments(two, end=b""), "hang"], two)
    yield make.failure("hang after tokens, with pings", [*segments(two, end=b""), Wait(0.01), *slow, "hang"], two)
    yield make.failure("hang before [DONE]", [*segments(tokens, end=b""), "hang"], tokens)
    refused = head("500 Internal Server Error", JSON, "Content-Length: 9")
    yield make.failure("500, then hang", [Send(refused), "hang"])
