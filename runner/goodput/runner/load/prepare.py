"""Writes the request file of a cell before it starts, and hashes what will be sent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from goodput.analysis.schema.base import Endpoint
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.bodies import CHAT_END, Entry
from goodput.runner.load.contents import Content, Contents
from goodput.runner.load.job import BODIES, ENTRIES
from goodput.runner.load.lengths import Lengths
from goodput.runner.load.prompts import BodyWriter, FittedText, Messages, PromptSource
from goodput.runner.load.schedule import Schedule, hashed_requests

SPARE_BYTES = 64 << 20  # of bodies prepared beyond lead-in and window; then they are recycled, rotated
SPARE_CLOSED = 512  # requests prepared beyond the hashed ones of a closed loop, at least 4 × concurrency
SPARE_CLOSED_BYTES = 2 << 20  # and at least as much; not for chat, whose prompts take long to make
_UNLIMITED = 1 << 32


@dataclass(frozen=True)
class Prepared:
    """What was written.

    Attributes:
        count: requests in the file.
        first_recycled: from which request on they are taken again.
        prompts_sha256: over length and ids (uint32, little-endian) of the prompts of lead-in and window;
            of a chat, over length and UTF-8 bytes of the text (of several messages, of their JSON).
        lengths: prompt and output tokens of the requests of lead-in and window.
    """

    count: int
    first_recycled: int
    prompts_sha256: str
    lengths: tuple[tuple[int, int], ...]


def write_requests(
    plan: PlannedLoad,
    schedule: Schedule | None,
    source: PromptSource,
    lengths: Lengths,
    *,
    endpoint: Endpoint,
    model: str,
    folder: Path,
) -> Prepared:
    """Write all requests of lead-in and window, and as much of the tail as fits `SPARE_BYTES`.

    Raises:
        PromptError: a source gave another length than asked, or a beginning that the load does not plan twice.
    """
    hashed = hashed_requests(plan, schedule)
    if schedule is not None:
        least, most, least_bytes = len(schedule.planned_ns), len(schedule.planned_ns), 0
    else:
        least, most = hashed + max(SPARE_CLOSED, 4 * (plan.load.concurrency or 0)), _UNLIMITED
        least_bytes = 0 if endpoint == "chat" else SPARE_CLOSED_BYTES
    contents, writer = Contents(source, endpoint, plan.load), BodyWriter(endpoint, model)
    digest = hashlib.sha256()
    offset = spare = index = 0
    asked: list[tuple[int, int]] = []
    with (folder / BODIES).open("wb") as body_file, (folder / ENTRIES).open("wb") as entry_file:
        while index < hashed or (index < most and spare < SPARE_BYTES and (index < least or spare < least_bytes)):
            prompt, output = lengths.at(index)
            made = contents.make(prompt, index)
            body, ids_at = _body(writer, made, source, output, plan.load.prefix_tokens or 0)
            if index < hashed:
                digest.update(made.digested)
                asked.append((prompt, output))
            else:
                spare += len(body)
            body_file.write(body)
            entry_file.write(Entry(offset, len(body), ids_at, prompt, output, made.shared).pack())
            offset += len(body)
            index += 1
    first = hashed if schedule is not None and index > hashed else 0
    return Prepared(index, first, digest.hexdigest(), tuple(asked))


def _body(writer: BodyWriter, made: Content, source: PromptSource, output_tokens: int, fixed: int) -> tuple[bytes, int]:
    """Body, and the position of the first id or word that may be rotated (0: none)."""
    if made.ids is not None:
        return writer.completion(made.ids, output_tokens, fixed=fixed)
    assert made.messages is not None
    body = writer.chat(made.messages, output_tokens)
    return body, _second_word(body, made.messages) if isinstance(source, FittedText) else 0


def _second_word(body: bytes, messages: Messages) -> int:
    """Where the message's second word begins; 0 where there is none, or the text is not in the body as it is."""
    first, space, rest = messages[-1]["content"].encode().partition(b" ")
    at = len(body) - len(CHAT_END) - len(rest)
    return at if space and body.endswith(first + space + rest + CHAT_END) else 0
