"""Reading the workers' send logs while they grow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goodput.runner.load.job import sent_file

ENTRY = np.dtype([("request", "<u4"), ("planned", "<i8"), ("sent", "<i8")])  # as `spool.SENT`


class SentTail:
    """What the workers have logged since the last look."""

    def __init__(self, folder: Path, processes: int) -> None:
        self._paths = [folder / sent_file(worker) for worker in range(processes)]
        self._taken = [0] * processes

    def entries(self) -> NDArray[np.void]:
        """New entries; times in ns from the cell's start, ``sent`` -1 for what was never sent."""
        found = []
        for index, path in enumerate(self._paths):
            entries = np.fromfile(path, dtype=ENTRY, offset=self._taken[index]) if path.exists() else _NONE
            self._taken[index] += entries.nbytes
            found.append(entries)
        return np.concatenate(found)


_NONE = np.empty(0, dtype=ENTRY)
