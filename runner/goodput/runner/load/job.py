"""What the trial's process and the workers share: the job, the file names, a page of counters.

Standard library only: a worker starts fast and stays small.
"""

from __future__ import annotations

import json
import mmap
import os
from dataclasses import asdict, dataclass
from pathlib import Path

JOB = "job.json"
CELL = "cell.json"
BODIES = "requests.bin"
ENTRIES = "requests.idx"
PLANNED = "planned.bin"
LIVE = "live.bin"
FOLLOWED = "followed.json"


def spool_file(index: int) -> str:
    """Spool of a worker."""
    return f"spool-{index}.bin"


def sent_file(index: int) -> str:
    """Send log of a worker."""
    return f"sent-{index}.bin"


def end_file(index: int) -> str:
    """Written last by a worker: its summary. Without it the cell did not finish."""
    return f"end-{index}.json"


@dataclass(frozen=True)
class Job:
    """What every worker does. Times in ns from the cell's start; headers come over standard input.

    A closed loop has ``concurrency`` instead of planned times, and its window opens by itself.
    """

    host: str
    port: int
    path: str
    processes: int
    cpus: tuple[int, ...]
    first_recycled: int
    opened_ns: int  # open loop only
    closed_ns: int
    deadline_ns: int
    concurrency: int | None
    window_ns: int | None  # closed loop by duration
    window_requests: int | None  # closed loop by count
    lead_in_limit_ns: int  # closed loop: the first requests must have ended by then
    drain_ns: int
    spare_connections: int
    tls: bool = False
    ca_file: str | None = None  # None: the system's store
    kernel_stamps: bool = True
    burst: bool = False  # the window ends with its last request

    def write(self, folder: Path) -> None:
        """Store it in the cell's folder."""
        (folder / JOB).write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> Job:
        """Load it."""
        document = json.loads((folder / JOB).read_text())
        return cls(**{**document, "cpus": tuple(document["cpus"])})


@dataclass(frozen=True)
class End:
    """A worker's summary of its part of the cell. Times in ns from the cell's start."""

    ended_ns: int
    drained: bool  # every window request ended by itself
    stopped: bool  # closed before its time: stop, or the parent is gone
    cpu_ns: int  # of the process, start to end, spinning included
    spin_ns: int  # of that, waiting for a planned time
    window_cpu_ns: int  # CPU from the cell's start to the window's end, spinning not included
    connections_max: int
    descriptors_max: int
    descriptors_limit: int
    core_share: float  # of a core that this process may have, up to 1
    retried: int
    offset_start_ns: int  # CLOCK_REALTIME − CLOCK_MONOTONIC
    offset_end_ns: int

    def write(self, folder: Path, index: int) -> None:
        """Store it at once or not at all."""
        part = folder / f"{end_file(index)}.part"
        part.write_text(json.dumps(asdict(self)))
        part.replace(folder / end_file(index))

    @classmethod
    def read(cls, folder: Path, index: int) -> End | None:
        """Load it, or None where the worker did not come that far."""
        try:
            return cls(**json.loads((folder / end_file(index)).read_text()))
        except FileNotFoundError:
            return None


class Live:
    """Counters in shared memory. Each field has one writer, so there is nothing to lock.

    Row 0 belongs to the cell: start (absolute CLOCK_MONOTONIC ns), and a closed loop's window edges in ns
    from the start (0: not yet). One row of eight follows per worker: requests sent, ended, of the window and
    open, of the first and ended, of the window and sent, ended without a 200; and its CLOCK_REALTIME −
    CLOCK_MONOTONIC in ns at the start.
    """

    START, OPENED, CLOSED = 0, 1, 2
    SENT, ENDED, WINDOW_OPEN, FIRST_ENDED, WINDOW_SENT, FAILED, OFFSET = range(7)
    _ROW = 8

    def __init__(self, folder: Path, processes: int, *, create: bool = False) -> None:
        path = folder / LIVE
        size = 8 * self._ROW * (processes + 1)
        if create:
            path.write_bytes(bytes(size))
        descriptor = os.open(path, os.O_RDWR)
        try:
            self._map = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
        self.cells = memoryview(self._map).cast("q")
        self._processes = processes
        if create:
            for worker in range(processes):
                self.cells[self.row(worker) + self.WINDOW_OPEN] = -1  # the window has not ended yet

    @classmethod
    def row(cls, worker: int) -> int:
        """Index of a worker's first cell."""
        return cls._ROW * (worker + 1)

    def total(self, field: int) -> int:
        """Sum of a field over the workers."""
        return sum(self.cells[self.row(worker) + field] for worker in range(self._processes))

    def drained(self) -> bool:
        """Whether every worker has passed the window's end and none has a window request open."""
        return all(self.cells[self.row(w) + self.WINDOW_OPEN] == 0 for w in range(self._processes))

    def close(self) -> None:
        """Give the memory back."""
        self.cells.release()
        self._map.close()
