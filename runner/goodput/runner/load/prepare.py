"""Writes the request file of a cell before it starts, and hashes what will be sent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goodput.analysis.schema import Endpoint
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.bodies import ENTRY
from goodput.runner.load.errors import PromptError
from goodput.runner.load.job import BODIES, ENTRIES
from goodput.runner.load.prompts import BodyWriter, Ids, PromptSource, TextSource
from goodput.runner.load.schedule import Schedule, hashed_requests

BLOCK_TOKENS = 16  # vLLM's block size: shorter prompts are never cached
SPARE_BYTES = 64 << 20  # of bodies prepared beyond lead-in and window; then they are recycled, rotated
SPARE_CLOSED = 512  # requests prepared beyond the hashed ones of a closed loop, at least 4 × concurrency
SPARE_CLOSED_BYTES = 2 << 20  # and at least as much; not for chat, whose prompts take long to make
_UNLIMITED = 1 << 32
_DIGEST_TYPE = np.dtype("<u4")


@dataclass(frozen=True)
class Prepared:
    """What was written.

    Attributes:
        count: requests in the file.
        first_recycled: from which request on they are taken again.
        prompts_sha256: over length and ids (uint32, little-endian) of the prompts of lead-in and window;
            of a chat, over length and UTF-8 bytes of the text.
    """

    count: int
    first_recycled: int
    prompts_sha256: str


def write_requests(
    plan: PlannedLoad,
    schedule: Schedule | None,
    source: PromptSource,
    *,
    endpoint: Endpoint,
    model: str,
    folder: Path,
) -> Prepared:
    """Write all requests of lead-in and window, and as much of the tail as fits `SPARE_BYTES`.

    Raises:
        PromptError: a source gave another length than asked, or the same first block twice.
    """
    hashed = hashed_requests(plan, schedule)
    if schedule is not None:
        least, most, least_bytes = len(schedule.planned_ns), len(schedule.planned_ns), 0
    else:
        least, most = hashed + max(SPARE_CLOSED, 4 * (plan.load.concurrency or 0)), _UNLIMITED
        least_bytes = 0 if endpoint == "chat" else SPARE_CLOSED_BYTES
    maker = _Maker(source, BodyWriter(endpoint, model), endpoint)
    digest = hashlib.sha256()
    offset = spare = index = 0
    with (folder / BODIES).open("wb") as body_file, (folder / ENTRIES).open("wb") as entry_file:
        while index < hashed or (index < most and spare < SPARE_BYTES and (index < least or spare < least_bytes)):
            body, ids_at, content = maker.make(plan.load.prompt_tokens, plan.load.output_tokens, index)
            if index < hashed:
                digest.update(len(content).to_bytes(4, "little") + content)
            else:
                spare += len(body)
            body_file.write(body)
            entry_file.write(ENTRY.pack(offset, len(body), ids_at, plan.load.prompt_tokens, plan.load.output_tokens))
            offset += len(body)
            index += 1
    first = hashed if schedule is not None and index > hashed else 0
    return Prepared(index, first, digest.hexdigest())


class _Maker:
    """Makes one body after another and sees to it that no prompt repeats."""

    def __init__(self, source: PromptSource, writer: BodyWriter, endpoint: Endpoint) -> None:
        if endpoint == "chat" and not isinstance(source, TextSource):
            raise PromptError("chat needs a prompt source that writes text")
        self._source = source
        self._writer = writer
        self._chat = endpoint == "chat"
        self._beginnings: set[bytes] = set()

    def make(self, prompt_tokens: int, output_tokens: int, index: int) -> tuple[bytes, int, bytes]:
        """Body, position of its first id (0: none), and the content that is hashed."""
        if self._chat and isinstance(self._source, TextSource):
            text = self._source.text(prompt_tokens, index)
            return self._writer.chat(text, output_tokens), 0, text.encode()
        ids = self._source.ids(prompt_tokens, index)
        if len(ids) != prompt_tokens:
            raise PromptError(f"prompt {index} has {len(ids)} ids, not {prompt_tokens}")
        content = np.asarray(ids).astype(_DIGEST_TYPE).tobytes()
        self._check_new(ids, content, index)
        body, at = self._writer.completion(ids, output_tokens)
        return body, at, content

    def _check_new(self, ids: Ids, content: bytes, index: int) -> None:
        if len(ids) < BLOCK_TOKENS:
            return
        beginning = content[: BLOCK_TOKENS * _DIGEST_TYPE.itemsize]
        if beginning in self._beginnings:
            raise PromptError(
                f"prompt {index} begins like an earlier one, a prefix cache would hit: the id pool is too small"
            )
        self._beginnings.add(beginning)
