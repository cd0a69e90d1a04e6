"""Damage (seeded, pure)."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace

from bench.fuzz.corpus import Answer, Ending

ENDINGS: tuple[Ending, ...] = ("keep", "close", "reset", "hang")
WORDS = (
    b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"\r\n0\r\n\r\n", b"0\r\n\r\n", b"0", b"data: ", b"data:",
    b"data: [DONE]\n\n", b'data: {"error":{"message":"no"}}\n\n', b'"error":{"message":"no"},', b'"error":null,',
    b'"error":{},', b'data: {"choices":[{"finish_reason":"abort"}]}\n\n', b"event: error\n", b": ping\n\n",
    b'"finish_reason":"length"', b'"finish_reason":"abort"', b'"finish_reason":null', b'"completion_tokens":4',
    b'"completion_tokens":9', b'"usage":null', b"\xef\xbb\xbf", b"\x00", b"\xff", b"\xc3", b"{", b"}", b'"', b"\\",
    b",", b";x=y", b"HTTP/1.1 100 Continue\r\n\r\n", b"Content-Length: 4\r\n", b"fffffffff",
    b"Transfer-Encoding: chunked\r\n",
)  # fmt: skip
_DIGIT = re.compile(rb"[0-9]")
MOST_MUTATIONS = 4
INSIDE = 0.6  # of the mutants are damaged inside their framing, which is right again afterwards


def mutant(corpus: Sequence[Answer], number: int, seed: int) -> Answer:
    """The mutant with that number; the same for the same seed."""
    generator = random.Random(f"{seed}:{number}")
    answer = generator.choice(corpus)
    inside = generator.random() < INSIDE and answer.framing is not None
    data = bytearray(answer.framing.payload if inside and answer.framing is not None else answer.data)
    for _ in range(generator.randint(0, MOST_MUTATIONS)):
        _damage(generator, data, corpus)
    if inside and answer.framing is not None:
        data[:] = answer.framing.around(bytes(data), generator)
    ending = generator.choice(ENDINGS) if generator.random() < 0.2 else answer.ending
    return replace(answer, data=bytes(data), places=_places(generator, answer, len(data)), ending=ending)


def _damage(generator: random.Random, data: bytearray, corpus: Sequence[Answer]) -> None:
    kind = generator.randrange(9)
    start = generator.randrange(len(data) + 1)
    stop = min(len(data), start + generator.choice((1, 1, 2, 4, 40)))
    if kind == 0 and start < len(data):
        data[start] ^= 1 << generator.randrange(8)
    elif kind == 1:
        del data[start:stop]
    elif kind == 2:
        data[start:start] = generator.choice(WORDS)
    elif kind == 3:
        data[start:stop] = generator.choice(WORDS)
    elif kind == 4:
        data[start:start] = data[start:stop]
    elif kind == 5 and generator.random() < 0.3:
        del data[start:]
    elif kind == 6:  # a part of another answer in place of the rest
        other = generator.choice(corpus).data
        data[start:] = other[generator.randrange(len(other) + 1) :]
    elif kind == 7:  # an event twice, or not at all
        begin, end = _event(generator, data)
        data[begin:end] = data[begin:end] * generator.choice((0, 2))
    elif kind == 8:  # a digit becomes another
        digit = _DIGIT.search(data, start)
        if digit:
            data[digit.start()] = generator.randrange(48, 58)


def _event(generator: random.Random, data: bytearray) -> tuple[int, int]:
    """Where some chunk or event begins and ends."""
    start = data.find(b"data: ", generator.randrange(len(data) + 1))
    stop = data.find(b"\n\n", start) + 2 if start >= 0 else 0
    return (start, stop) if stop > start >= 0 else (0, 0)


def _places(generator: random.Random, answer: Answer, length: int) -> tuple[int, ...]:
    """Where the reads begin: as sent, anywhere, or byte by byte around one place."""
    kind = generator.randrange(4)
    if kind == 0:
        places = set(answer.places)
    elif kind == 3 and length:
        middle = generator.randrange(length)
        places = set(range(max(0, middle - 8), middle + 8))
    else:
        places = {generator.randrange(length + 1) for _ in range(generator.randrange(kind * 8))}
    return tuple(sorted(place for place in places if 0 < place < length))
