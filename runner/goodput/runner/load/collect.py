"""Reads a cell's folder into its results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from goodput.analysis.schema.cell import Client, Window
from goodput.runner.load.asks import Asks
from goodput.runner.load.cell import CellNote, CellRecords
from goodput.runner.load.errors import SpoolError
from goodput.runner.load.job import CELL, PLANNED, End, Job, Live, spool_file
from goodput.runner.load.parse import CountTokens
from goodput.runner.load.reader import Edges, Reader, Recorder, Sent, Taken, Totals
from goodput.runner.load.records import counts, in_flight, judged, load_state, seconds
from goodput.runner.load.sentlog import SentTail


def finished(folder: Path) -> bool:
    """Whether every worker came to its planned end."""
    try:
        job = Job.read(folder)
    except FileNotFoundError:
        return False
    ends = [End.read(folder, worker) for worker in range(job.processes)]
    return (folder / CELL).exists() and all(end is not None and not end.stopped for end in ends)


def collect(folder: Path, count_tokens: CountTokens | None = None) -> CellRecords:
    """The cell in that folder, ended or stopped.

    Raises:
        SpoolError: a worker left no summary.
    """
    job = Job.read(folder)
    note = CellNote.model_validate_json((folder / CELL).read_bytes())
    ends = []
    for worker in range(job.processes):
        end = End.read(folder, worker)
        if end is None:
            raise SpoolError(f"worker {worker} did not come to its end")
        ends.append(end)
    sent = _sent(folder, job)
    ended_ns = max(end.ended_ns for end in ends)
    edges = _edges(folder, job, sent, ended_ns)
    taken = Taken(sent)
    asks = Asks.read(folder, job.first_recycled)
    recorder = Recorder(note.start_monotonic_ns, edges, asks)
    reader = Reader(recorder, taken, asks)
    for worker, end in enumerate(ends):
        reader.read(folder / spool_file(worker), end.offset_start_ns, count_tokens)
    recorder.missing(_unsent(folder, job, taken, edges))
    return cell_records(Ran(note, ends, edges), recorder.totals, asks)


def _sent(folder: Path, job: Job) -> Sent:
    return np.sort(SentTail(folder, job.processes).entries(), order=["planned", "request"])


def read_edges(folder: Path, job: Job) -> Edges:
    """The window of a cell that has ended."""
    ends = [End.read(folder, worker) for worker in range(job.processes)]
    return _edges(folder, job, _sent(folder, job), max(end.ended_ns for end in ends if end is not None))


def _edges(folder: Path, job: Job, sent: Sent, ended_ns: int) -> Edges:
    if job.burst:
        return Edges(0, ended_ns, known=True)
    if job.concurrency is None:
        return Edges(job.opened_ns, job.closed_ns, known=True)
    live = Live(folder, job.processes)
    opened = int(live.cells[Live.OPENED])
    live.close()
    if not opened:
        return Edges(ended_ns, ended_ns, known=False)
    if job.window_ns is not None:
        return Edges(opened, opened + job.window_ns, known=True)
    inside = sent["planned"][sent["planned"] >= opened]
    wanted = job.window_requests or 0
    return Edges(opened, int(inside[wanted]) if len(inside) > wanted else ended_ns, known=True)


def _to_the_last_end(edges: Edges, requests: pa.Table) -> Edges:
    """The window of a burst: until its last request has ended, however."""
    last = np.nanmax(seconds(requests, "end_s"), initial=0.0)
    return replace(edges, closed=round(last * 1e9) or edges.closed)


def _unsent(folder: Path, job: Job, taken: Taken, edges: Edges) -> Iterator[tuple[int, int]]:
    """Open loop: arrivals of lead-in and window that no worker took."""
    if job.concurrency is None:
        times = np.fromfile(folder / PLANNED, dtype="<i8")
        for request in range(int(np.searchsorted(times, edges.closed))):
            if request not in taken:
                yield request, int(times[request])


@dataclass(frozen=True)
class Ran:
    """How the cell went. ``virtual``: on a simulated clock; ``ends`` has one then."""

    note: CellNote
    ends: list[End]
    edges: Edges
    virtual: bool = False

    @property
    def burst(self) -> bool:
        """Its window ends with its last request."""
        return self.note.plan.load.arrival == "burst"


def cell_records(ran: Ran, totals: Totals, asks: Asks) -> CellRecords:
    """The records of a cell from its rows and sums."""
    requests = totals.rows.table()
    if ran.burst:
        ran = replace(ran, edges=_to_the_last_end(ran.edges, requests))
    note, ends, edges = ran.note, ran.ends, ran.edges
    asked = asks.summary(requests, edges.closed / 1e9, note)
    ended_ns = max(end.ended_ns for end in ends)
    opened_s, closed_s = edges.opened / 1e9, edges.closed / 1e9
    opened = in_flight(requests, opened_s) if edges.known else None
    closed = in_flight(requests, closed_s) if edges.known else None
    start_s = note.start_monotonic_ns / 1e9
    return CellRecords(
        requests=requests,
        window=Window(
            started_unix=note.started_unix,
            lead_in_seconds=opened_s,
            opened=opened_s,
            closed=closed_s,
            ended=ended_ns / 1e9,
            drained=all(end.drained for end in ends),
            schedule_sha256=note.schedule_sha256,
            prompts_sha256=note.prompts_sha256,
        ),
        counts=counts(requests),
        client=_client(ran, totals, requests),
        itl=totals.gaps.document(),
        load_state=load_state(opened or 0, closed or 0, judged=judged(note.plan.load)),
        in_flight_opened=opened,
        in_flight_closed=closed,
        delivered_requests=totals.requests,
        delivered_output_tokens=totals.output_tokens,
        delivered_total_tokens=totals.output_tokens + totals.prompt_tokens,
        prompt_drift_ratio=abs(totals.reported - totals.asked) / totals.asked if totals.asked else None,
        monotonic_opened=start_s + opened_s,
        monotonic_closed=start_s + closed_s,
        window_opened=edges.known,
        stopped=any(end.stopped for end in ends),
        retried=sum(end.retried for end in ends),
        asked=asked,
    )


def _client(ran: Ran, totals: Totals, requests: pa.Table) -> Client:
    """Lateness and planned against sent are those of lead-in and window; CPU is that until the window's end."""
    ends, edges = ran.ends, ran.edges
    needed = requests.select(["planned_s", "sent_s", "outcome"])
    judged = needed.filter(pc.less(requests.column("planned_s"), edges.closed / 1e9))
    late = seconds(judged, "sent_s") - seconds(judged, "planned_s")
    late = late[~np.isnan(late)]
    p50, p99, highest = np.quantile(late, [0.5, 0.99, 1]).tolist() if len(late) else (None, None, None)
    fullest = max(ends, key=lambda end: end.descriptors_max)
    return Client(
        processes=len(ends),
        planned=len(judged),
        sent=int(np.count_nonzero(judged.column("outcome").to_numpy() != "not_sent")),
        send_lag_p50_seconds=p50,
        send_lag_p99_seconds=p99,
        send_lag_max_seconds=highest,
        cpu_seconds=sum(end.cpu_ns for end in ends) / 1e9,
        events=totals.events,
        reads=totals.reads,
        coalesced_reads=totals.coalesced,
        ceiling_events_per_second=ran.note.ceiling_events_per_second,
        used_ratio=_used_ratio(ran),
        stamp_source="virtual" if ran.virtual else "kernel" if totals.kernel else "user",
        clock_step_seconds=max(abs(end.offset_end_ns - end.offset_start_ns) for end in ends) / 1e9,
        connections_max=sum(end.connections_max for end in ends),
        descriptors_max=None if ran.virtual else fullest.descriptors_max,
        descriptors_limit=None if ran.virtual else fullest.descriptors_limit,
    )


def _used_ratio(ran: Ran) -> float | None:
    """CPU of the busiest worker from the cell's start to the window's end, of what it may have in that time.

    At 1 it takes in all that it can, which is its ceiling. None where a worker did not see the window end.
    A burst's window is the whole cell.
    """
    edges, burst = ran.edges, ran.burst
    if not edges.known or not edges.closed or not all(end.window_cpu_ns for end in ran.ends):
        return None
    used = [(end.cpu_ns - end.spin_ns if burst else end.window_cpu_ns) / end.core_share for end in ran.ends]
    return max(used) / edges.closed
