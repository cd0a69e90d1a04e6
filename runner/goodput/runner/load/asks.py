"""What each request of a cell asked for, read back from its request file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from goodput.runner.load.bodies import ENTRY_FIELDS
from goodput.runner.load.cell import Asked, CellNote
from goodput.runner.load.job import ENTRIES
from goodput.runner.load.records import seconds

_ENTRY_TYPE = np.dtype([(name, "<u8" if name == "offset" else "<u4") for name in ENTRY_FIELDS])


class Asks:
    """The request file of a cell's folder; beyond its end the requests from ``first_recycled`` on come again."""

    def __init__(self, folder: Path, first_recycled: int) -> None:
        self._entries = np.fromfile(folder / ENTRIES, dtype=_ENTRY_TYPE)
        self._prompts = self._entries["prompt_tokens"].tolist()
        self._outputs = self._entries["output_tokens"].tolist()
        self._first = min(first_recycled, len(self._entries) - 1)

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
        unique_prompts = note.unique_prompts
        numbers = requests.column("request").to_numpy()
        asked = self._entries[np.fromiter(map(self._place, numbers.tolist()), dtype=np.int64, count=len(numbers))]
        window = requests.column("in_window").to_numpy(zero_copy_only=False).astype(np.bool_)
        sent = ~np.isnan(seconds(requests, "sent_s"))
        shared, times = np.unique(asked["shared_tokens"][sent], return_counts=True)
        early = seconds(requests, "planned_s") < closed_seconds
        last = len(self._entries) if unique_prompts is None else min(unique_prompts, len(self._entries))
        return Asked(
            prompt_tokens=tuple(asked["prompt_tokens"][window].tolist()),
            output_tokens=tuple(asked["output_tokens"][window].tolist()),
            shared=dict(zip(shared.tolist(), times.tolist(), strict=True)),
            sent_prompt_tokens=int(asked["prompt_tokens"][sent].sum(dtype=np.int64)),
            repeated=0 if unique_prompts is None else int(np.count_nonzero(early & (numbers >= last))),
            left_out=note.left_out_rows,
        )
