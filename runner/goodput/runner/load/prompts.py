"""What is sent: prompts of exact length and the bodies of their requests.

A prompt is a pure function of (seed, index). Its ids are drawn at random, so two prompts differ from their
first block on and a prefix cache cannot help; the check in `PreparedRequests` makes sure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from goodput.analysis.schema.base import Endpoint
from goodput.runner.load.errors import PromptError
from goodput.runner.load.processes import Purpose, generator

Ids = NDArray[np.int64]
Messages = Sequence[Mapping[str, str]]
BODY_END = b"]}"  # after the ids of a completion's prompt
_GROUPS_AT_ONCE = 4096


class PromptSource(Protocol):
    """Where the prompts of one load point come from."""

    def ids(self, n: int, index: int) -> Ids:
        """Token ids of the ``index``-th prompt, exactly ``n``."""
        ...


@runtime_checkable
class TextSource(Protocol):
    """A source that can also write a prompt as messages, for chat."""

    def messages(self, n: int, index: int) -> Messages:
        """The ``index``-th prompt; with the chat template ``n`` tokens."""
        ...


@runtime_checkable
class KnownIds(Protocol):
    """A `TextSource` whose ids are those that the server makes of the messages."""

    known: bool


class RandomIds:
    """Uniformly random ids from a pool.

    Args:
        pool: ids that the model knows: a list, or a half-open range of ids.
        seed: of this block and load.
        purpose: what they are drawn for; another one gives other ids.
    """

    def __init__(self, pool: Sequence[int], seed: int, purpose: Purpose = "prompts") -> None:
        if len(pool) < 2:
            raise PromptError("the id pool needs at least two ids")
        self._range = pool if isinstance(pool, range) and pool.step == 1 else None
        self._pool = np.empty(0, dtype=np.int64) if self._range else np.asarray(pool, dtype=np.int64)
        self._seed, self._purpose = seed, purpose

    def ids(self, n: int, index: int) -> Ids:
        """See `PromptSource`."""
        drawn = generator(self._seed, self._purpose, index)
        if self._range is not None:
            return drawn.integers(self._range.start, self._range.stop, n)
        return self._pool[drawn.integers(0, len(self._pool), n)]


class SharedPrefixIds:
    """Prompts that begin with the prefix of a random group: ``tokens`` ids that all prompts of the group share.

    Args:
        source: of the ids behind the prefix.
        prefixes: of the prefixes, by group.
        seed: of this block and load.
        groups: how many groups there are, equally likely.
        tokens: length of a prefix; every prompt must be longer.
    """

    def __init__(self, source: PromptSource, prefixes: PromptSource, seed: int, *, groups: int, tokens: int) -> None:
        self._source, self._prefixes = source, prefixes
        self._count, self._tokens = groups, tokens
        self._draw = generator(seed, "groups")
        self._groups: list[int] = []
        self._made: dict[int, Ids] = {}

    def ids(self, n: int, index: int) -> Ids:
        """See `PromptSource`."""
        while len(self._groups) <= index:
            self._groups += self._draw.integers(0, self._count, _GROUPS_AT_ONCE).tolist()
        group = self._groups[index]
        if group not in self._made:
            self._made[group] = self._prefixes.ids(self._tokens, group)
        return np.concatenate([self._made[group], self._source.ids(n - self._tokens, index)])


class FittedText:
    """Chat prompts: ``fit(ids, n)`` turns drawn ids into text that is exactly ``n`` tokens, template included.

    Attributes:
        head_tokens: that the template puts before every prompt, so that all begin alike.
    """

    def __init__(self, source: PromptSource, fit: Callable[[Ids, int], str], head_tokens: int = 0) -> None:
        self._source = source
        self._fit = fit
        self.head_tokens = head_tokens

    def ids(self, n: int, index: int) -> Ids:
        """See `PromptSource`."""
        return self._source.ids(n, index)

    def messages(self, n: int, index: int) -> Messages:
        """See `TextSource`."""
        return user_message(self._fit(self._source.ids(n, index), n))


def user_message(text: str) -> Messages:
    """A chat that is one message."""
    return [{"role": "user", "content": text}]


class BodyWriter:
    """Writes request bodies. ``ignore_eos``: the output is exactly ``max_tokens`` long, else the request failed."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self._chat = endpoint == "chat"
        self._common = {
            "model": model,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }

    def completion(self, ids: Ids, output_tokens: int, *, fixed: int = 0) -> tuple[bytes, int]:
        """Body and the position of its first id behind ``fixed`` ones; the ids end before `BODY_END`."""
        head = json.dumps({**self._common, "max_tokens": output_tokens, "prompt": 0}, separators=(",", ":"))
        first = "".join(f"{token}," for token in ids[:fixed].tolist())
        start = f"{head[:-2]}[{first}".encode()
        return start + ",".join(map(str, ids[fixed:].tolist())).encode() + BODY_END, len(start)

    def chat(self, messages: Messages, output_tokens: int) -> bytes:
        """Body of a chat."""
        document = {**self._common, "max_completion_tokens": output_tokens, "messages": messages}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
