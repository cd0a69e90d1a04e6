"""Reads a spool folder into the results of a cell. Memory holds the open requests and one row per ended one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goodput.analysis.schema import Client, Window
from goodput.runner.load import spool
from goodput.runner.load.cell import CellNote, CellRecords
from goodput.runner.load.errors import SpoolError
from goodput.runner.load.job import CELL, PLANNED, End, Job, Live, sent_file, spool_file
from goodput.runner.load.parse import CountTokens, Parsed, ResponseParser
from goodput.runner.load.records import GapHistogram, RequestRecord, counts, in_flight, load_state, table

_SENT_TYPE = np.dtype([("request", "<u4"), ("planned", "<i8"), ("sent", "<i8")])
Sent = NDArray[np.void]


@dataclass(frozen=True)
class Edges:
    """The window in ns from the cell's start; ``known`` is False where it never opened."""

    opened: int
    closed: int
    known: bool


@dataclass
class _Totals:
    """Sums over all requests while the spool is read."""

    records: list[RequestRecord] = field(default_factory=list)
    gaps: GapHistogram = field(default_factory=GapHistogram)
    events: int = 0
    reads: int = 0
    coalesced: int = 0
    requests: int = 0
    output_tokens: int = 0
    prompt_tokens: int = 0
    reported: int = 0  # prompt tokens of the window as the server counts them, and as asked
    asked: int = 0
    kernel: bool = True


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
    totals = _Totals()
    planned = {int(row["request"]): (int(row["planned"]), int(row["sent"])) for row in sent}
    reader = _Reader(note, edges, planned, totals)
    for worker, end in enumerate(ends):
        reader.read(folder / spool_file(worker), end.offset_start_ns, count_tokens)
    reader.missing(_unsent(folder, job, planned, edges))
    return _results(job, note, ends, edges, totals)


def _sent(folder: Path, job: Job) -> Sent:
    logs = [np.fromfile(folder / sent_file(w), dtype=_SENT_TYPE) for w in range(job.processes)]
    return np.sort(np.concatenate(logs), order=["planned", "request"])


def _edges(folder: Path, job: Job, sent: Sent, ended_ns: int) -> Edges:
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


def _unsent(folder: Path, job: Job, planned: dict[int, tuple[int, int]], edges: Edges) -> Iterator[tuple[int, int]]:
    """Open loop: arrivals of lead-in and window that no worker took."""
    if job.concurrency is None:
        times = np.fromfile(folder / PLANNED, dtype="<i8")
        for request in range(int(np.searchsorted(times, edges.closed))):
            if request not in planned:
                yield request, int(times[request])


class _Reader:
    """Turns spool records into rows."""

    def __init__(self, note: CellNote, edges: Edges, planned: dict[int, tuple[int, int]], totals: _Totals) -> None:
        self._load = note.plan.load
        self._start = note.start_monotonic_ns
        self._edges = edges
        self._planned = planned
        self._totals = totals

    def read(self, path: Path, clock_offset_ns: int, count_tokens: CountTokens | None) -> None:
        """One worker's spool."""
        open_: dict[int, ResponseParser] = {}
        for request, kind, stamp, body in spool.read_spool(path, clock_offset_ns):
            parser = open_.get(request)
            if parser is None:
                parser = open_[request] = ResponseParser(self._load.output_tokens, count_tokens)
            if kind <= spool.READ_USER:
                self._totals.reads += 1
                parser.read(body, stamp, kernel=kind == spool.READ_KERNEL)
            elif kind == spool.RETRIED:
                parser.restart()
            else:
                del open_[request]
                self._row(request, parser.finish(kind, stamp, body))
        if open_:
            raise SpoolError(f"{path.name}: {len(open_)} requests have no end")

    def missing(self, arrivals: Iterator[tuple[int, int]]) -> None:
        """Planned arrivals that were never taken: the cell was ended before."""
        for request, planned_ns in arrivals:
            self._totals.records.append(
                RequestRecord(
                    request=request,
                    planned_s=planned_ns / 1e9,
                    sent_s=None,
                    first_s=None,
                    last_s=None,
                    end_s=None,
                    prompt_tokens=self._load.prompt_tokens,
                    output_tokens=None,
                    token_source="none",  # noqa: S106 (tokens of text, no secret)
                    outcome="not_sent",
                    reason="Stopped",
                    in_window=self._inside(planned_ns),
                    itl_max_s=None,
                    itl_sum_s=None,
                    itl_count=None,
                    stamp_source="none",
                    coalesced_reads=0,
                )
            )

    def _inside(self, planned_ns: int) -> bool:
        return self._edges.known and self._edges.opened <= planned_ns < self._edges.closed

    def _row(self, request: int, parsed: Parsed) -> None:
        planned_ns, sent_ns = self._planned[request]
        inside = self._inside(planned_ns)
        gaps = parsed.gaps

        def seconds(stamp: int | None) -> float | None:
            return None if stamp is None else (stamp - self._start) / 1e9

        record = RequestRecord(
            request=request,
            planned_s=planned_ns / 1e9,
            sent_s=sent_ns / 1e9 if sent_ns >= 0 else None,
            first_s=seconds(parsed.first_ns),
            last_s=seconds(parsed.last_ns),
            end_s=seconds(parsed.end_ns),
            prompt_tokens=self._load.prompt_tokens if parsed.prompt_tokens is None else parsed.prompt_tokens,
            output_tokens=parsed.output_tokens,
            token_source=parsed.source,
            outcome=parsed.outcome,
            reason=parsed.reason,
            in_window=inside,
            itl_max_s=None if gaps is None else gaps.highest_ns / 1e9,
            itl_sum_s=None if gaps is None else gaps.total_ns / 1e9,
            itl_count=None if gaps is None else gaps.tokens,
            stamp_source="none" if parsed.first_ns is None else "kernel" if parsed.kernel else "user",
            coalesced_reads=parsed.arrived.coalesced,
        )
        self._totals.records.append(record)
        self._add(record, parsed)

    def _add(self, record: RequestRecord, parsed: Parsed) -> None:
        totals, edges = self._totals, self._edges
        totals.coalesced += parsed.arrived.coalesced
        totals.kernel = totals.kernel and (parsed.kernel or parsed.first_ns is None)
        totals.events += parsed.events
        opened, closed = self._start + edges.opened, self._start + edges.closed
        totals.output_tokens += parsed.delivered(opened, closed)
        if parsed.first_ns is not None and opened <= parsed.first_ns < closed:
            totals.prompt_tokens += record.prompt_tokens
        completed = record.outcome == "completed"
        if completed and parsed.last_ns is not None and opened <= parsed.last_ns < closed:
            totals.requests += 1
        if record.in_window and completed:
            if parsed.gaps is not None:
                for gap, count in parsed.gaps.parts:
                    totals.gaps.add(gap, count)
            if parsed.prompt_tokens is not None:
                totals.reported += parsed.prompt_tokens
                totals.asked += self._load.prompt_tokens


def _results(job: Job, note: CellNote, ends: list[End], edges: Edges, totals: _Totals) -> CellRecords:
    records = totals.records
    ended_ns = max(end.ended_ns for end in ends)
    opened_s, closed_s = edges.opened / 1e9, edges.closed / 1e9
    opened = in_flight(records, opened_s) if edges.known else None
    closed = in_flight(records, closed_s) if edges.known else None
    start_s = note.start_monotonic_ns / 1e9
    return CellRecords(
        requests=table(records),
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
        counts=counts(records),
        client=_client(job, note, ends, edges, totals),
        itl=totals.gaps.document(),
        load_state=load_state(opened or 0, closed or 0, open_loop=job.concurrency is None),
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
    )


def _client(job: Job, note: CellNote, ends: list[End], edges: Edges, totals: _Totals) -> Client:
    """Lateness and planned against sent are those of lead-in and window; CPU is that until the window's end."""
    judged = [record for record in totals.records if record.planned_s < edges.closed / 1e9]
    late = [record.sent_s - record.planned_s for record in judged if record.sent_s is not None]
    p50, p99 = np.quantile(late, [0.5, 0.99]).tolist() if late else (None, None)
    fullest = max(ends, key=lambda end: end.descriptors_max)
    return Client(
        processes=job.processes,
        planned=len(judged),
        sent=sum(1 for record in judged if record.outcome != "not_sent"),
        send_lag_p50_seconds=p50,
        send_lag_p99_seconds=p99,
        send_lag_max_seconds=max(late, default=None),
        cpu_seconds=sum(end.cpu_ns for end in ends) / 1e9,
        events=totals.events,
        reads=totals.reads,
        coalesced_reads=totals.coalesced,
        ceiling_events_per_second=note.ceiling_events_per_second,
        used_ratio=_used_ratio(ends, edges),
        stamp_source="kernel" if totals.kernel else "user",
        clock_step_seconds=max(abs(end.offset_end_ns - end.offset_start_ns) for end in ends) / 1e9,
        connections_max=sum(end.connections_max for end in ends),
        descriptors_max=fullest.descriptors_max,
        descriptors_limit=fullest.descriptors_limit,
    )


def _used_ratio(ends: list[End], edges: Edges) -> float | None:
    """CPU of the busiest worker from the cell's start to the window's end, of what it may have in that time.

    At 1 it takes in all that it can, which is its ceiling. None where a worker did not see the window end.
    """
    if not edges.known or not edges.closed or not all(end.window_cpu_ns for end in ends):
        return None
    return max(end.window_cpu_ns / end.core_share for end in ends) / edges.closed
