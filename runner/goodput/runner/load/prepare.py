"""Writes the request file of a cell before it starts, and hashes what will be sent."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from goodput.analysis.schema import Endpoint, Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.beginnings import BLOCK_TOKENS, Beginnings
from goodput.runner.load.bodies import CHAT_END, Entry
from goodput.runner.load.errors import PromptError
from goodput.runner.load.job import BODIES, ENTRIES
from goodput.runner.load.lengths import Lengths
from goodput.runner.load.prompts import BodyWriter, FittedText, Ids, KnownIds, Messages, PromptSource, TextSource
from goodput.runner.load.schedule import Schedule, hashed_requests

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
    maker = _Maker(source, BodyWriter(endpoint, model), endpoint, plan.load)
    digest = hashlib.sha256()
    offset = spare = index = 0
    asked: list[tuple[int, int]] = []
    with (folder / BODIES).open("wb") as body_file, (folder / ENTRIES).open("wb") as entry_file:
        while index < hashed or (index < most and spare < SPARE_BYTES and (index < least or spare < least_bytes)):
            prompt, output = lengths.at(index)
            made = maker.make(prompt, output, index)
            if index < hashed:
                digest.update(len(made.content).to_bytes(4, "little") + made.content)
                asked.append((prompt, output))
            else:
                spare += len(made.body)
            body_file.write(made.body)
            entry_file.write(Entry(offset, len(made.body), made.ids_at, prompt, output, made.shared).pack())
            offset += len(made.body)
            index += 1
    first = hashed if schedule is not None and index > hashed else 0
    return Prepared(index, first, digest.hexdigest(), tuple(asked))


@dataclass(frozen=True, slots=True)
class _Made:
    """Body, position of the first id that may be rotated (0: none), what is hashed, tokens shared with others."""

    body: bytes
    ids_at: int
    content: bytes
    shared: int


class _Maker:
    """Makes one body after another and sees to it that no prompt repeats but where the load plans it."""

    def __init__(self, source: PromptSource, writer: BodyWriter, endpoint: Endpoint, load: Load) -> None:
        if endpoint == "chat" and not isinstance(source, TextSource):
            raise PromptError("chat needs a prompt source that writes text")
        self._source = source
        self._writer = writer
        self._chat = endpoint == "chat"
        self._prefix = load.prefix_tokens or 0
        self._planned: int | None = self._prefix // BLOCK_TOKENS * BLOCK_TOKENS
        self._beginnings = Beginnings(self._prefix // BLOCK_TOKENS + 1)
        if load.dataset in ("sharegpt", "jsonl"):  # texts may begin alike: that is the workload
            self._planned, self._beginnings = None, Beginnings()

    def make(self, prompt_tokens: int, output_tokens: int, index: int) -> _Made:
        """One request."""
        if self._chat and isinstance(self._source, TextSource):
            messages = self._source.messages(prompt_tokens, index)
            body = self._writer.chat(messages, output_tokens)
            at = _second_word(body, messages) if isinstance(self._source, FittedText) else 0
            return _Made(body, at, _content(messages), self._shared_chat(prompt_tokens, index))
        ids = self._source.ids(prompt_tokens, index)
        if len(ids) != prompt_tokens:
            raise PromptError(f"prompt {index} has {len(ids)} ids, not {prompt_tokens}")
        content = _bytes(ids)
        shared = self._beginnings.shared(content)
        if self._planned is not None and shared > self._planned:
            raise PromptError(
                f"prompt {index} begins like an earlier one, a prefix cache would hit: the id pool is too small"
            )
        body, at = self._writer.completion(ids, output_tokens, fixed=self._prefix)
        return _Made(body, at, content, shared)

    def _shared_chat(self, prompt_tokens: int, index: int) -> int:
        """Tokens that a chat shares with an earlier one: at least the head of the template."""
        if isinstance(self._source, KnownIds):
            return self._beginnings.shared(_bytes(self._source.ids(prompt_tokens, index)))
        return self._source.head_tokens if index and isinstance(self._source, FittedText) else 0


def _bytes(ids: Ids) -> bytes:
    return np.asarray(ids).astype(_DIGEST_TYPE).tobytes()


def _second_word(body: bytes, messages: Messages) -> int:
    """Where the message's second word begins; 0 where there is none, or the text is not in the body as it is."""
    first, space, rest = messages[-1]["content"].encode().partition(b" ")
    at = len(body) - len(CHAT_END) - len(rest)
    return at if space and body.endswith(first + space + rest + CHAT_END) else 0


def _content(messages: Messages) -> bytes:
    if len(messages) == 1:
        return messages[0]["content"].encode()
    return json.dumps(messages, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
