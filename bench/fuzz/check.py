"""What must hold for any answer, however damaged and however cut into reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from bench.fuzz import oracle
from bench.fuzz.corpus import ASKED, Answer
from bench.fuzz.rig import Heard, Rig, parse, parse_slowly, pieces_of

from goodput.runner.load import spool
from goodput.runner.load.parse import Parsed

# A line that looks like the last chunk, inside the payload: the worker may take it for the end, and the parser then
# finds the answer cut off. It is no field of an event, so it is a failure either way.
_LAST_CHUNK = rb"0+[ \t]*(?:;[^\r\n]*)?\r\n"
_LIKE_THE_END = re.compile(rb"(?:\A|\n)" + _LAST_CHUNK)
_CHUNK_LIKE_THE_END = re.compile(rb"\n[0-9A-Fa-f]+\r\n" + _LAST_CHUNK)  # such a line is the first of a chunk

Again = Literal["one read", "json"]


class Result(NamedTuple):
    """How the answer was judged, and what is wrong with that."""

    reason: str | None  # None: completed
    complaints: list[str]


def check(rig: Rig, answer: Answer, again: Again | None = None) -> Result:
    """Run one answer through hot loop and parser.

    Args:
        rig: the loop and the parser.
        answer: bytes, where the reads begin, how it ends.
        again: parse it a second time: as one read, where the worker reads it in one too; or with every event read
            as JSON, where the payload is compared with an independent reading.
    """
    cut = pieces_of(answer.data, answer.places)
    heard = rig.hear(cut, answer.ending)
    parsed = parse(heard.records)
    fed = b"".join(body for _, _, body in heard.records[:-1])
    reading = oracle.read(answer.data)
    fed_reading = reading if fed == answer.data else oracle.read(fed)
    complaints = _nothing_is_lost(heard, cut, fed_reading, len(fed))
    complaints += _verdict_holds(heard, parsed, fed_reading)
    complaints += _ends_where_it_ends(reading, heard, cut)
    if again == "one read":
        whole = pieces_of(answer.data, ())
        complaints += _ends_where_it_ends(reading, rig.hear(whole, answer.ending), whole)
        complaints += _one_read_says_the_same(heard, parsed, fed)
    elif again == "json":
        complaints += _json_says_the_same(heard, parsed, fed_reading)
    return Result(parsed.reason, complaints)


def _nothing_is_lost(heard: Heard, pieces: Sequence[bytes], reading: oracle.Reading, fed: int) -> list[str]:
    """The spool holds every byte that was read, and each is payload, framing or rejected."""
    reads = [body for _, _, body in heard.records[:-1]]
    found = []
    if reads != list(pieces[: len(reads)]):
        found.append("the spool differs from what was read")
    if heard.records[-1][0] not in {spool.ENDED, spool.CLOSED} and len(reads) != len(pieces):
        found.append("reads are missing in the spool")
    if reading.framing + len(reading.payload) + reading.rejected != fed:
        found.append("the independent reading has lost bytes")
    return found


def _verdict_holds(heard: Heard, parsed: Parsed, reading: oracle.Reading) -> list[str]:
    if parsed.outcome != "completed":
        return [] if parsed.reason else ["a failure without a reason"]
    closed = heard.records[-1][0] == spool.END_OF_FILE
    wrong = oracle.may_be_success(reading, ASKED, closed=closed)
    found = [f"called a success: {wrong}"] if wrong is not None else []
    if parsed.first_ns is None or parsed.output_tokens != ASKED or parsed.reason is not None:
        found.append("a success without its facts")
    return found


def _json_says_the_same(heard: Heard, parsed: Parsed, reading: oracle.Reading) -> list[str]:
    slow, payload = parse_slowly(heard.records)
    found = []
    if _told(slow, times=True) != _told(parsed, times=True):
        found.append(f"the short cut says {_told(parsed, times=True)}, JSON says {_told(slow, times=True)}")
    if payload != (reading.payload if reading.stream else b""):
        found.append(f"{len(payload)} bytes of payload, {len(reading.payload)} by an independent reading")
    return found


def _one_read_says_the_same(heard: Heard, parsed: Parsed, fed: bytes) -> list[str]:
    one = parse([(spool.READ_KERNEL, 1, fed), heard.records[-1]] if fed else heard.records)
    if _told(one, times=False) == _told(parsed, times=False):
        return []
    return [f"in pieces {_told(parsed, times=False)}, in one {_told(one, times=False)}"]


def _ends_where_it_ends(reading: oracle.Reading, heard: Heard, pieces: Sequence[bytes]) -> list[str]:
    """The worker sees the end with the read that ends there."""
    if _LIKE_THE_END.search(reading.payload) or _CHUNK_LIKE_THE_END.search(b"".join(pieces)):
        return []
    boundaries, at = set(), 0
    for piece in pieces:
        at += len(piece)
        boundaries.add(at)
    if reading.end is not None and reading.end in boundaries and heard.end != reading.end:
        return [f"the answer ends behind {reading.end} bytes, the worker saw {heard.end}"]
    if reading.end is None and not reading.broken and heard.end is not None:
        return [f"the answer has no end, the worker saw one behind {heard.end} bytes"]
    return []


def _told(parsed: Parsed, *, times: bool) -> tuple[object, ...]:
    """What is compared: all, or all but the times."""
    told = (
        parsed.outcome, parsed.reason, parsed.status, parsed.prompt_tokens, parsed.output_tokens,
        parsed.source, parsed.events, parsed.arrived.total,
    )  # fmt: skip
    if not times:
        return told
    gaps = None if parsed.gaps is None else (parsed.gaps.total_ns, parsed.gaps.tokens, parsed.gaps.highest_ns)
    return (*told, parsed.first_ns, parsed.answer_ns, parsed.last_ns, parsed.end_ns, parsed.arrived.coalesced, gaps)
