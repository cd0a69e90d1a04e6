"""The process that follows a cell's spool while it runs: ``python -m goodput.runner.load.follow FOLDER``.

It parses what the workers append, keeps histograms of the window's latencies and writes them every second for
the runner's ``/metrics``. Nothing of the records depends on it. It ends when the workers have, after the last
byte; when its standard input ends before, at once.
"""

from __future__ import annotations

import select
import sys
from pathlib import Path

from goodput.runner.load.asks import Asks
from goodput.runner.load.cell import CellNote
from goodput.runner.load.collect import read_edges
from goodput.runner.load.job import CELL, FOLLOWED, End, Job, Live, spool_file
from goodput.runner.load.latencies import Followed, Latencies
from goodput.runner.load.parse import Parsed
from goodput.runner.load.reader import Edges
from goodput.runner.load.responses import Responses
from goodput.runner.load.sentlog import SentTail
from goodput.runner.load.spool import SpoolTail

LOOK_SECONDS = 0.25
WRITE_LOOKS = 4
_FOREVER_NS = 1 << 62


class Follower:
    """Follows the spools of one cell, which has started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._job = Job.read(folder)
        self._note = CellNote.model_validate_json((folder / CELL).read_bytes())
        self._live = Live(folder, self._job.processes)
        self._asks = Asks.read(folder, self._job.first_recycled)
        self._begin()

    def _begin(self) -> None:
        """From the first byte on."""
        self._latencies = Latencies()
        self._sent: dict[int, tuple[int, int]] = {}  # request → planned, sent
        self._log = SentTail(self._folder, self._job.processes)
        self._tails = [
            (self._tail(worker), Responses(self._asks.output_tokens)) for worker in range(self._job.processes)
        ]

    def _tail(self, worker: int) -> SpoolTail:
        return SpoolTail(self._folder / spool_file(worker), self._live.cells[Live.row(worker) + Live.OFFSET])

    def look(self) -> Followed:
        """Take in what has come since the last look."""
        self._take(None)
        return self._latencies.document()

    def last_look(self) -> Followed:
        """The same after the workers' end. A window by count has its exact edges only now: all is read again."""
        edges = read_edges(self._folder, self._job)
        if self._job.concurrency is not None and self._job.window_requests is not None:
            self._begin()
        self._take(edges)
        return self._latencies.document()

    @property
    def ended(self) -> bool:
        """Whether every worker has ended."""
        return all(End.read(self._folder, worker) is not None for worker in range(self._job.processes))

    def _take(self, edges: Edges | None) -> None:
        for tail, responses in self._tails:
            while records := tail.block():
                # In this order: whoever has ended in these records is in the log, and the window had its edges.
                new = self._log.entries()
                times = zip(new["planned"].tolist(), new["sent"].tolist(), strict=True)
                self._sent.update(zip(new["request"].tolist(), times, strict=True))
                now = edges or self._edges()
                for request, parsed in responses.take(records):
                    self._end(request, parsed, now)

    def _edges(self) -> Edges:
        """As far as they are known."""
        job, cells = self._job, self._live.cells
        if job.burst:
            return Edges(0, _FOREVER_NS, known=True)
        if job.concurrency is None:
            return Edges(job.opened_ns, job.closed_ns, known=True)
        opened = int(cells[Live.OPENED])
        closed = opened + job.window_ns if job.window_ns is not None else int(cells[Live.CLOSED]) or _FOREVER_NS
        return Edges(opened, closed, known=opened > 0)

    def _end(self, request: int, parsed: Parsed, edges: Edges) -> None:
        planned_ns, sent_ns = self._sent.pop(request)
        inside = edges.known and edges.opened <= planned_ns < edges.closed
        self._latencies.add(parsed, self._note.start_monotonic_ns + sent_ns, in_window=inside)


def read_followed(folder: Path) -> Followed | None:
    """What the follower of that cell has written last."""
    try:
        return Followed.model_validate_json((folder / FOLLOWED).read_bytes())
    except FileNotFoundError:
        return None


def run(folder: Path) -> None:
    """Follow until the workers have ended, or standard input has."""
    follower = Follower(folder)
    looks = 0
    while not (ended := follower.ended) and not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
        followed = follower.look()
        looks += 1
        if looks % WRITE_LOOKS == 0:
            _write(folder, followed)
    if ended:
        _write(folder, follower.last_look())


def _write(folder: Path, followed: Followed) -> None:
    part = folder / f"{FOLLOWED}.part"
    part.write_bytes(followed.to_json())
    part.replace(folder / FOLLOWED)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
