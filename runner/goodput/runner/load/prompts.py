"""What is sent: prompts of exact length and the bodies of their requests.

A prompt is a pure function of (seed, index). Its ids are drawn at random, so two prompts differ from their
first block on and a prefix cache cannot help; the check in `PreparedRequests` makes sure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from goodput.analysis.schema import Endpoint
from goodput.runner.load.errors import PromptError
from goodput.runner.load.schedule import seed_sequence

Ids = NDArray[np.int64]
BODY_END = b"]}"  # after the ids of a completion's prompt


class PromptSource(Protocol):
    """Where the prompts of one load point come from."""

    def ids(self, n: int, index: int) -> Ids:
        """Token ids of the ``index``-th prompt, exactly ``n``."""
        ...


@runtime_checkable
class TextSource(Protocol):
    """A source that can also write a prompt as text, for chat."""

    def text(self, n: int, index: int) -> str:
        """Content of the ``index``-th user message; with the chat template exactly ``n`` tokens."""
        ...


class RandomIds:
    """Uniformly random ids from a pool.

    Args:
        pool: ids that the model knows: a list, or a half-open range of ids.
        seed: of this block and load.
    """

    def __init__(self, pool: Sequence[int], seed: int) -> None:
        if len(pool) < 2:
            raise PromptError("the id pool needs at least two ids")
        self._range = pool if isinstance(pool, range) and pool.step == 1 else None
        self._pool = np.empty(0, dtype=np.int64) if self._range else np.asarray(pool, dtype=np.int64)
        self._seed = seed

    def ids(self, n: int, index: int) -> Ids:
        """See `PromptSource`."""
        generator = np.random.Generator(np.random.PCG64(seed_sequence(self._seed, "prompts", index)))
        if self._range is not None:
            return generator.integers(self._range.start, self._range.stop, n)
        return self._pool[generator.integers(0, len(self._pool), n)]


class FittedText:
    """Chat prompts: ``fit(ids, n)`` turns drawn ids into text that is exactly ``n`` tokens, template included."""

    def __init__(self, source: PromptSource, fit: Callable[[Ids, int], str]) -> None:
        self._source = source
        self._fit = fit

    def ids(self, n: int, index: int) -> Ids:
        """See `PromptSource`."""
        return self._source.ids(n, index)

    def text(self, n: int, index: int) -> str:
        """See `TextSource`."""
        return self._fit(self._source.ids(n, index), n)


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
        self._digits: dict[int, bytes] = {}

    def completion(self, ids: Ids, output_tokens: int) -> tuple[bytes, int]:
        """Body and the position of the first id in it; the ids end before `BODY_END`."""
        head = json.dumps({**self._common, "max_tokens": output_tokens, "prompt": 0}, separators=(",", ":"))
        start = head[:-2].encode() + b"["
        return start + ",".join(map(str, ids.tolist())).encode() + BODY_END, len(start)

    def chat(self, text: str, output_tokens: int) -> bytes:
        """Body with one user message."""
        message = {"role": "user", "content": text}
        document = {**self._common, "max_completion_tokens": output_tokens, "messages": [message]}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
