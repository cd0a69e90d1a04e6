"""Which rows a load point sends, in which order, and how long they are.

All loads of a server lifetime share the rows: one random order, drawn from the block's seed, is dealt out to them
in turn, so that no row comes twice as long as rows last; then a load's own rows begin again, and the record says so.
A trace's prompts are random ids: only its lengths are drawn, and those may come again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from goodput.runner.dataset.rows import Row, Trace
from goodput.runner.load.errors import PromptError
from goodput.runner.load.processes import Times, generator
from goodput.runner.load.prompts import Ids, Messages

CountText = Callable[[str], Sequence[int]]
CountMessages = Callable[[Messages], Sequence[int]]


def share(count: int, seed: int, part: int, parts: int) -> list[int]:
    """The rows of one of several loads: every ``parts``-th of one random order."""
    rows: list[int] = generator(seed, "rows").permutation(count)[part::parts].tolist()
    return rows


class SampledRows:
    """Prompts and lengths from rows: a `PromptSource`, a `TextSource` and the `Lengths`. Tokens are counted once.

    Args:
        rows: in the order in which they are sent.
        ids_of: token ids of a text without special tokens.
        chat_ids_of: token ids of messages with the chat template; None: the rows are sent as token ids.
        max_tokens: longer rows (prompt and output) are left out.
    """

    known = True  # the ids are those that the server makes of the messages

    def __init__(
        self, rows: Sequence[Row], ids_of: CountText, chat_ids_of: CountMessages | None, max_tokens: int | None
    ) -> None:
        self._rows, self._ids_of, self._chat_ids_of, self._max_tokens = iter(rows), ids_of, chat_ids_of, max_tokens
        self._taken: list[tuple[Row, Ids, int]] = []
        self.unique: int | None = None
        self.left_out = 0

    def at(self, index: int) -> tuple[int, int]:
        """See `Lengths`."""
        _, ids, output = self._row(index)
        return len(ids), output

    def ids(self, n: int, index: int) -> Ids:  # noqa: ARG002 (the row has its own length)
        """See `PromptSource`."""
        return self._row(index)[1]

    def messages(self, n: int, index: int) -> Messages:  # noqa: ARG002 (the row has its own length)
        """See `TextSource`."""
        return self._row(index)[0].chat

    def _row(self, index: int) -> tuple[Row, Ids, int]:
        while index >= len(self._taken) and self.unique is None:
            row = next(self._rows, None)
            if row is None:
                self.unique = len(self._taken)
            else:
                self._take(row)
        if not self._taken:
            raise PromptError(f"no row of the dataset has at most {self._max_tokens} tokens: raise maxTokens")
        return self._taken[index % len(self._taken)]

    def _take(self, row: Row) -> None:
        ids = self._prompt_ids(row)
        output = row.output if isinstance(row.output, int) else len(self._ids_of(row.output))
        if not len(ids) or not output or (self._max_tokens is not None and len(ids) + output > self._max_tokens):
            self.left_out += 1
            return
        self._taken.append((row, np.asarray(ids, dtype=np.int64), output))

    def _prompt_ids(self, row: Row) -> Sequence[int]:
        if self._chat_ids_of is not None:
            return self._chat_ids_of(row.chat)
        return row.ids if row.ids is not None else self._ids_of(row.text or "")


class TraceLengths:
    """The lengths of a trace's requests: in its order for a replay, else in a random order, again and again.

    Args:
        trace: the requests.
        max_tokens: longer ones (prompt and output) are left out.
        seed: of the random order; None: that of the trace.
        shortest: of a prompt: a chat template has a length of its own.
    """

    unique: int | None = None  # prompts are random ids: they never repeat

    def __init__(self, trace: Trace, max_tokens: int | None, *, seed: int | None, shortest: int = 1) -> None:
        prompts = [max(shortest, tokens) for tokens in trace.prompt_tokens]
        pairs = list(zip(prompts, trace.output_tokens, strict=True))
        self._fits = [at for at, pair in enumerate(pairs) if max_tokens is None or sum(pair) <= max_tokens]
        self.left_out = len(pairs) - len(self._fits)
        if not self._fits:
            raise PromptError(f"no request of the trace has at most {max_tokens} tokens: raise maxTokens")
        order = self._fits if seed is None else generator(seed, "rows").permutation(self._fits).tolist()
        self._pairs = [pairs[at] for at in order]
        self._times = trace.times_ns

    def at(self, index: int) -> tuple[int, int]:
        """See `Lengths`."""
        return self._pairs[index % len(self._pairs)]

    def times(self, speed: float) -> Times:
        """When the requests that are not too long arrive at that speed: ns from the trace's beginning."""
        times: Times = np.rint(self._times[self._fits] / speed).astype(np.int64)
        return times
