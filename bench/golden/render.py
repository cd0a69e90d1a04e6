"""The bytes of streams (pure): documents of both endpoints, events, HTTP framing, segments."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench.golden.script import Send, Step, Wait

STREAM_TYPE = "text/event-stream; charset=utf-8"
LAST_CHUNK = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"
SEGMENT_SECONDS = 0.003  # between bytes that must not arrive in one read


class Piece(NamedTuple):
    """One server-sent event, or part of the stream between events, and the tokens it carries."""

    data: bytes
    tokens: int = 0


class Wire(NamedTuple):
    """A whole response: its bytes, and (position behind the byte that completes an event, its tokens)."""

    data: bytes
    marks: tuple[tuple[int, int], ...]


def event(document: object) -> bytes:
    """One event with a JSON document, as compact as vLLM writes it."""
    return b"data: " + json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def head(status: str = "200 OK", content_type: str | None = STREAM_TYPE, *headers: str, version: str = "1.1") -> bytes:
    """A response head."""
    lines = [f"HTTP/{version} {status}", *([f"Content-Type: {content_type}"] if content_type else []), *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


CHUNKED = head("200 OK", STREAM_TYPE, "Transfer-Encoding: chunked")


def chunk(payload: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(payload), payload)


@dataclass(frozen=True)
class Form:
    """The documents of one endpoint."""

    chat: bool
    prompt_tokens: int = 4
    model: str = "golden"

    def usage(self, total: int) -> dict[str, int]:
        """The counts after ``total`` tokens."""
        prompt = self.prompt_tokens
        return {"prompt_tokens": prompt, "total_tokens": prompt + total, "completion_tokens": total}

    def document(self, choices: object, usage: object = None, **more: object) -> dict[str, Any]:
        """A chunk around choices; ``usage`` None leaves it out."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        base = {"id": "cmpl-golden", "object": kind, "created": 0, "model": self.model, "choices": choices, **more}
        return base if usage is None else {**base, "usage": usage}

    def choice(self, text: str | None, finish: str | None = None, **delta: object) -> dict[str, Any]:
        """One choice; ``delta`` is more for a chat's delta."""
        if self.chat:
            said = {} if text is None else {"content": text}
            return {"index": 0, "delta": {**delta, **said}, "logprobs": None, "finish_reason": finish}
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, "stop_reason": None}

    def token(self, total: int, text: str = "x", finish: str | None = None, *, counted: bool = True) -> bytes:
        """The event after which there are ``total`` tokens."""
        return event(self.document([self.choice(text, finish)], self.usage(total) if counted else None))

    def closing(self, total: int, choices: object = ()) -> bytes:
        """The event with the counts at the end."""
        return event(self.document(choices, self.usage(total)))


def framed(pieces: Iterable[Piece], begin: bytes = CHUNKED, end: bytes = LAST_CHUNK, *, chunked: bool = True) -> Wire:
    """Head, every piece in a chunk of its own (or bare), and what ends the body."""
    data = bytearray(begin)
    marks = []
    for piece in pieces:
        framing = chunk(piece.data) if chunked else piece.data
        if piece.tokens:
            start = framing.index(b"\r\n") + 2 if chunked else 0
            marks.append((len(data) + start + len(piece.data), piece.tokens))
        data += framing
    return Wire(bytes(data + end), tuple(marks))


def boundaries(pieces: Iterable[Piece], begin: bytes = CHUNKED, *, chunked: bool = True) -> list[int]:
    """Where each piece of `framed` begins, and where the last one ends."""
    at = [len(begin)]
    for piece in pieces:
        at.append(at[-1] + len(chunk(piece.data) if chunked else piece.data))
    return at


def cut(wire: Wire, places: Sequence[int], seconds: float = SEGMENT_SECONDS) -> list[Step]:
    """The response in segments that begin at ``places``, with a wait between them."""
    edges = sorted({0, len(wire.data), *(place for place in places if 0 < place < len(wire.data))})
    steps: list[Step] = []
    for start, stop in itertools.pairwise(edges):
        tokens = sum(count for end, count in wire.marks if start < end <= stop)
        steps += [Send(wire.data[start:stop], tokens), Wait(seconds)]
    return steps[:-1]


def first_event(pieces: Iterable[Piece]) -> int | None:
    """Number of the event that carries the first token; comments are no events."""
    events = [piece for piece in pieces if b"data" in piece.data]
    return next((number for number, piece in enumerate(events) if piece.tokens), None)
