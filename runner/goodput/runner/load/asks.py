"""What each request of a cell asked for, read back from its request file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goodput.runner.load.beginnings import BLOCK_TOKENS
from goodput.runner.load.bodies import ENTRY_FIELDS, Entry
from goodput.runner.load.cell import Asked, CellNote
from goodput.runner.load.job import ENTRIES
from goodput.runner.load.records import seconds

ROW_DATASETS = ("sharegpt", "jsonl")  # their rows are sent as they are, so that they can come again
_ENTRY_TYPE = np.dtype([(name, "<u8" if name == "offset" else "<u4") for name in ENTRY_FIELDS])


class Asks:
    """What was prepared, in order; beyond its end the requests from ``first_recycled`` on come again.

    Args:
        entries: of `bodies.Entry`.
        first_recycled: index of a request.
    """

    def __init__(self, entries: Sequence[Entry] | NDArray[np.void], first_recycled: int) -> None:
        self._entries = np.array(entries, dtype=_ENTRY_TYPE)
        self._prompts = self._entries["prompt_tokens"].tolist()
        self._outputs = self._entries["output_tokens"].tolist()
        self._first = min(first_recycled, len(self._entries) - 1)

    @classmethod
    def read(cls, folder: Path, first_recycled: int) -> Asks:
        """Those of a cell's folder."""
        return cls(np.fromfile(folder / ENTRIES, dtype=_ENTRY_TYPE), first_recycled)

    def _place(self, request: int) -> int:
        count = len(self._prompts)
        return request if request < count else self._first + (request - count) % (count - self._first)

    def prompt_tokens(self, request: int) -> int:
        """Asked length of the prompt."""
        return int(self._prompts[self._place(request)])

    def output_tokens(self, request: int) -> int:
        """Asked length of the output."""
        return int(self._outputs[self._place(request)])

    def summary(self, requests: pa.Table, closed_seconds: float, note: CellNote) -> Asked:
        """What the planned requests asked for.

        Args:
            requests: columns of `records.REQUESTS_SCHEMA`.
            closed_seconds: the window's end.
            note: says from which request on prompts repeat.
        """
        count, unique = len(self._entries), note.unique_prompts
        numbers = requests.column("request").to_numpy()
        asked = self._entries[np.fromiter(map(self._place, numbers.tolist()), dtype=np.int64, count=len(numbers))]
        again = numbers >= count
        asked["shared_tokens"][again] = self._shared_again(asked[again], note)
        window = requests.column("in_window").to_numpy(zero_copy_only=False).astype(np.bool_)
        sent = ~np.isnan(seconds(requests, "sent_s"))
        shared, times = np.unique(asked["shared_tokens"][sent], return_counts=True)
        early = seconds(requests, "planned_s") < closed_seconds
        last = count if unique is None else min(unique, count)
        rows = note.plan.load.dataset in ROW_DATASETS
        return Asked(
            prompt_tokens=tuple(asked["prompt_tokens"][window].tolist()),
            output_tokens=tuple(asked["output_tokens"][window].tolist()),
            shared=dict(zip(shared.tolist(), times.tolist(), strict=True)),
            sent_prompt_tokens=int(asked["prompt_tokens"][sent].sum(dtype=np.int64)),
            repeated=int(np.count_nonzero(early & (numbers >= last))) if rows else 0,
            left_out=note.left_out_rows,
        )

    def _shared_again(self, asked: NDArray[np.void], note: CellNote) -> NDArray[np.uint32]:
        """Shared tokens of requests that come again, when whatever they begin like has been sent before."""
        load = note.plan.load
        if load.prefix_tokens is not None:  # its group's prefix stays, the ids behind it are rotated
            return np.full(len(asked), load.prefix_tokens // BLOCK_TOKENS * BLOCK_TOKENS, dtype=np.uint32)
        if note.endpoint != "chat":
            return asked["shared_tokens"]
        if load.dataset in ROW_DATASETS:  # a chat is sent as it was
            return (asked["prompt_tokens"] - 1) // BLOCK_TOKENS * BLOCK_TOKENS
        # The template's head and the first word stay.
        return np.full(len(asked), self._entries["shared_tokens"].max() + 1, dtype=np.uint32)
