"""What is damaged: every answer of the golden server's catalogue."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Literal, get_args

from bench.fuzz import oracle
from bench.golden.build import Endpoint
from bench.golden.catalogue import cases
from bench.golden.render import CHUNKED, LAST_CHUNK, chunk
from bench.golden.script import Send, Stream

ASKED = 4
_EVENT = re.compile(rb"(?<=\n\n)|(?<=\r\r)")
MOST_BYTES = 8192  # longer ones only make everything slower

Ending = Literal["keep", "close", "reset", "hang"]


@dataclass(frozen=True)
class Framing:
    """A chunked answer that is whole."""

    head: bytes
    payload: bytes
    behind: bytes  # what follows the last chunk with payload

    def around(self, payload: bytes, generator: random.Random) -> bytes:
        """Another payload in chunks: events, pieces of one length, or all in one."""
        kind = generator.randrange(3)
        if kind == 0:
            parts = [part for part in _EVENT.split(payload) if part]
        else:
            length = generator.randint(1, 200) if kind == 1 else len(payload) or 1
            parts = [payload[at : at + length] for at in range(0, len(payload), length)]
        return self.head + b"".join(chunk(part) for part in parts) + self.behind


@dataclass(frozen=True)
class Answer:
    """The bytes of an answer, where its segments began, and what the server did then."""

    name: str
    data: bytes
    places: tuple[int, ...]
    ending: Ending
    framing: Framing | None


def answers() -> list[Answer]:
    """All answers of both endpoints, the same ones once."""
    found: dict[tuple[bytes, Ending], Answer] = {}
    for endpoint in get_args(Endpoint):
        for case in cases(endpoint, ASKED):
            assert not isinstance(case.plan, Stream)
            pieces = [step.data for step in case.plan if isinstance(step, Send)]
            data = b"".join(pieces)
            ending: Ending = case.plan[-1]  # type: ignore[assignment]  # a case's last step is its ending
            places = tuple(sum(map(len, pieces[:number])) for number in range(1, len(pieces)))
            answer = Answer(f"{endpoint}: {case.name}", data, places, ending, _framing(data))
            if len(data) <= MOST_BYTES:
                found.setdefault((data, ending), answer)
    return list(found.values())


def _framing(data: bytes) -> Framing | None:
    reading = oracle.read(data)
    if not data.startswith(CHUNKED) or reading.broken or not reading.payload:
        return None
    return Framing(CHUNKED, reading.payload, LAST_CHUNK if reading.end is not None else b"")
