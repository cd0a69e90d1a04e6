"""What the catalogue's cases are put together from (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bench.golden.render import (
    CHUNKED,
    DONE,
    LAST_CHUNK,
    Form,
    Piece,
    Wire,
    boundaries,
    cut,
    event,
    first_event,
    framed,
    head,
)
from bench.golden.script import Case, Send, Step

Endpoint = Literal["completions", "chat"]
Pieces = Sequence[Piece]

END = Piece(DONE)
ERROR = Piece(event({"error": {"message": "no", "type": "InternalServerError", "code": 500}}))
FLAT_ERROR = Piece(event({"object": "error", "message": "no", "type": "InternalServerError", "code": 500}))


class Maker:
    """Makes cases for one endpoint and for a client that asks for ``asked`` tokens."""

    def __init__(self, endpoint: Endpoint, asked: int) -> None:
        if asked < 4:
            raise ValueError("the catalogue needs requests for at least 4 tokens")
        self.form = Form(chat=endpoint == "chat")
        self.asked = asked

    def token(
        self, total: int, text: str = "x", finish: str | None = None, *, carries: int = 1, counted: bool = True
    ) -> Piece:
        """The event after which there are ``total`` tokens."""
        return Piece(self.form.token(total, text, finish, counted=counted), carries)

    def tokens(
        self, count: int | None = None, *, last: str | None = "length", counted: bool = True, text: str = "x"
    ) -> list[Piece]:
        """One event per token; the last one has the finish reason ``last``."""
        count = self.asked if count is None else count
        return [
            self.token(total, text, last if total == count else None, counted=counted) for total in range(1, count + 1)
        ]

    def texts(self, *texts: str) -> list[Piece]:
        """As many tokens as asked, the last ones with these texts."""
        first = self.asked - len(texts)
        rows = [self.token(total) for total in range(1, first + 1)]
        for number, text in enumerate(texts, first + 1):
            rows.append(self.token(number, text, "length" if number == self.asked else None))
        return rows

    def closing(self, total: int | None = None, choices: object = ()) -> Piece:
        """The usage at the end."""
        return Piece(self.form.closing(self.asked if total is None else total, choices))

    def delta(self, total: int, carries: int, finish: str | None = None, **delta: object) -> Piece:
        """A chat's event with another delta than content."""
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Piece(event(self.form.document([choice], self.form.usage(total))), carries)

    def plain(self) -> list[Piece]:
        """The stream that vLLM sends: tokens, usage, [DONE]."""
        return [*self.tokens(), self.closing(), END]

    def success(self, name: str, steps: Sequence[Step], pieces: Pieces) -> Case:
        """A case that a client must complete."""
        return Case(name, tuple(steps), "success", sum(piece.tokens for piece in pieces), first_event(pieces))

    def failure(self, name: str, steps: Sequence[Step], pieces: Pieces = ()) -> Case:
        """A case that no client may call a success."""
        return Case(name, tuple(steps), "failure", sum(piece.tokens for piece in pieces), first_event(pieces))

    def kept(self, name: str, pieces: Pieces, *, good: bool = True) -> Case:
        """Every event a chunk and a segment; then the connection stays open."""
        return (self.success if good else self.failure)(name, kept(pieces), pieces)

    def at_once(self, name: str, pieces: Pieces) -> Case:
        """A success in one chunk and one segment."""
        return self.success(name, [*cut(one_chunk(pieces), ()), "keep"], pieces)


def segments(pieces: Pieces, begin: bytes = CHUNKED, end: bytes = LAST_CHUNK, *, chunked: bool = True) -> list[Step]:
    """The head, then every event, in a segment of its own."""
    return cut(framed(pieces, begin, end, chunked=chunked), boundaries(pieces, begin, chunked=chunked))


def kept(pieces: Pieces) -> list[Step]:
    """As `segments`; the connection stays open."""
    return [*segments(pieces), "keep"]


def one_chunk(pieces: Pieces) -> Wire:
    """The whole stream in one chunk."""
    data = b"".join(piece.data for piece in pieces)
    begin = len(CHUNKED) + len(b"%x\r\n" % len(data))
    wire = framed([Piece(data)])
    at, marks = begin, []
    for piece in pieces:
        at += len(piece.data)
        marks += [(at, piece.tokens)] if piece.tokens else []
    return Wire(wire.data, tuple(marks))


def rewritten(pieces: Pieces, old: bytes, new: bytes) -> list[Piece]:
    """Other bytes in every event."""
    return [Piece(piece.data.replace(old, new), piece.tokens) for piece in pieces]


def response(status: str, content_type: str | None, body: bytes, *headers: str) -> list[Step]:
    """A whole response with a length."""
    return [Send(head(status, content_type, *headers, f"Content-Length: {len(body)}") + body), "keep"]
