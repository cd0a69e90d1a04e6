"""The prompts of a cell one after the other: what each says, what of it is hashed, what a prefix cache may hit."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from goodput.analysis.schema.base import Endpoint
from goodput.analysis.schema.planned import Load
from goodput.runner.load.beginnings import BLOCK_TOKENS, Beginnings
from goodput.runner.load.errors import PromptError
from goodput.runner.load.prompts import FittedText, Ids, KnownIds, Messages, PromptSource, TextSource

_DIGEST_TYPE = np.dtype("<u4")


@dataclass(frozen=True, slots=True)
class Content:
    """One prompt.

    Attributes:
        ids: its token ids; None for a chat.
        messages: of a chat; None for ids.
        hashed: ids as uint32, little-endian; of a chat its text (of several messages, their JSON) in UTF-8.
        shared: tokens at its beginning that an earlier prompt began with.
    """

    ids: Ids | None
    messages: Messages | None
    hashed: bytes
    shared: int

    @property
    def digested(self) -> bytes:
        """What goes into the hash over all prompts: length and content."""
        return len(self.hashed).to_bytes(4, "little") + self.hashed


class Contents:
    """Makes one prompt after another and sees to it that none repeats but where the load plans it.

    Raises:
        PromptError: chat, and the source writes no text.
    """

    def __init__(self, source: PromptSource, endpoint: Endpoint, load: Load) -> None:
        if endpoint == "chat" and not isinstance(source, TextSource):
            raise PromptError("chat needs a prompt source that writes text")
        self._source = source
        self._chat = endpoint == "chat"
        prefix = load.prefix_tokens or 0
        self._planned: int | None = prefix // BLOCK_TOKENS * BLOCK_TOKENS
        self._beginnings = Beginnings(prefix // BLOCK_TOKENS + 1)
        if load.dataset in ("sharegpt", "jsonl"):  # texts may begin alike: that is the workload
            self._planned, self._beginnings = None, Beginnings()

    def make(self, prompt_tokens: int, index: int) -> Content:
        """The ``index``-th prompt.

        Raises:
            PromptError: it has another length than asked, or a beginning that the load does not plan twice.
        """
        if self._chat and isinstance(self._source, TextSource):
            messages = self._source.messages(prompt_tokens, index)
            return Content(None, messages, _text(messages), self._shared_chat(prompt_tokens, index))
        ids = self._source.ids(prompt_tokens, index)
        if len(ids) != prompt_tokens:
            raise PromptError(f"prompt {index} has {len(ids)} ids, not {prompt_tokens}")
        hashed = _bytes(ids)
        shared = self._beginnings.shared(hashed)
        if self._planned is not None and shared > self._planned:
            raise PromptError(
                f"prompt {index} begins like an earlier one, a prefix cache would hit: the id pool is too small"
            )
        return Content(ids, None, hashed, shared)

    def _shared_chat(self, prompt_tokens: int, index: int) -> int:
        """Tokens that a chat shares with an earlier one: at least the head of the template."""
        if isinstance(self._source, KnownIds):
            return self._beginnings.shared(_bytes(self._source.ids(prompt_tokens, index)))
        return self._source.head_tokens if index and isinstance(self._source, FittedText) else 0


def _bytes(ids: Ids) -> bytes:
    return np.asarray(ids).astype(_DIGEST_TYPE).tobytes()


def _text(messages: Messages) -> bytes:
    if len(messages) == 1:
        return messages[0]["content"].encode()
    return json.dumps(messages, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
