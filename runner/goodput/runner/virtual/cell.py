"""One cell in virtual time: the load against the engine, every token's time recorded."""

from __future__ import annotations

from goodput.analysis.schema.base import Endpoint, RequestOutcome
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.cell import CellNote, CellRecords
from goodput.runner.load.collect import Ran, cell_records
from goodput.runner.load.job import End
from goodput.runner.load.parse import Parsed
from goodput.runner.load.reader import Edges, Recorder
from goodput.runner.load.schedule import draw
from goodput.runner.scrape import INTERVAL_SECONDS
from goodput.runner.snapshot import Snapshot
from goodput.runner.virtual.arrivals import arrivals
from goodput.runner.virtual.engine import NANOSECONDS, Engine, Served, sample
from goodput.runner.virtual.exchange import Exchange, parsed
from goodput.runner.virtual.requests import Requests
from goodput.runner.workload import Workload

SAMPLE_NS = round(INTERVAL_SECONDS * NANOSECONDS)


class VirtualCell:
    """Runs one load to its end.

    Args:
        engine: idle; its clock is the cell's, and stands for the wall clock.
        planned: the load.
        work: its prompts and lengths.
        endpoint: what the prompts are for.

    Attributes:
        samples: the engine's gauges and counters meanwhile.

    Raises:
        LoadError: prompts cannot be made, or a trace is too short.
    """

    def __init__(self, engine: Engine, planned: PlannedLoad, work: Workload, endpoint: Endpoint) -> None:
        schedule = draw(planned, work.replayed) if planned.load.open_loop else None
        self.samples: list[Snapshot] = []
        self._engine, self._planned = engine, planned
        self._requests = Requests(planned, schedule, work, endpoint, engine)
        self._arrivals = arrivals(planned, schedule)
        self._start = engine.now_ns
        self._note = CellNote(
            plan=planned,
            endpoint=endpoint,
            start_monotonic_ns=self._start,
            started_unix=self._start / NANOSECONDS,
            schedule_sha256=self._requests.schedule_sha256,
            prompts_sha256=self._requests.prompts_sha256,
        )
        self._lengths = work.lengths
        self._open: dict[int, Exchange] = {}
        self._ended: list[tuple[Exchange, Parsed]] = []  # before the window's edges are known
        self._recorder: Recorder | None = None
        self._taken = self._window_open = self._most_open = 0
        self._next_sample = 0

    def run(self) -> CellRecords:
        """The records of the whole cell."""
        engine, start = self._engine, self._start
        while not self._over(now := engine.now_ns - start):
            self._look(now)
            for served in engine.advance(start + self._next_event()):
                self._token(served)
        return self._conclude(engine.now_ns - start)

    # -- time --------------------------------------------------------------------------------------

    def _over(self, now: int) -> bool:
        """Every request of the window has ended, or their time is up."""
        closed, limit = self._arrivals.closed_ns, self._arrivals.limit_ns
        if closed is not None and now >= closed and not self._window_open:
            return True
        return limit is not None and now >= limit

    def _next_event(self) -> int:
        """The next time at which anything happens that is no token."""
        now = self._engine.now_ns - self._start
        times = (self._next_sample, self._arrivals.due(), self._arrivals.closed_ns, self._arrivals.limit_ns)
        return min(time for time in times if time is not None and time > now)

    def _look(self, now: int) -> None:
        """Sample and send what is due."""
        if now >= self._next_sample:
            self.samples.append(sample(self._engine))
            self._next_sample += SAMPLE_NS
        while (due := self._arrivals.due()) is not None and due <= now:
            self._send(self._arrivals.take(), now)

    # -- requests ----------------------------------------------------------------------------------

    def _send(self, planned_ns: int, now: int) -> None:
        index, self._taken = self._taken, self._taken + 1
        prompt, output, ids = self._requests.take(index)
        exchange = Exchange(index, planned_ns, output, prompt)
        self._window_open += self._inside(planned_ns)
        uid = self._engine.submit(prompt, output, ids)
        if uid is None:
            self._end(exchange, now, "failed", "Http400")
            return
        self._open[uid] = exchange
        self._most_open = max(self._most_open, len(self._open))

    def _inside(self, planned_ns: int) -> bool:
        opened, closed = self._arrivals.opened_ns, self._arrivals.closed_ns
        return opened is not None and planned_ns >= opened and (closed is None or planned_ns < closed)

    def _token(self, served: Served) -> None:
        exchange = self._open.get(served.uid)
        if exchange is None:  # of the warm-up
            return
        now = self._engine.now_ns
        exchange.stamps.append(now)
        if served.finish_reason is not None:
            del self._open[served.uid]
            short = len(exchange.stamps) < exchange.output_tokens
            self._end(exchange, now - self._start, *(("failed", "ShortOutput") if short else ("completed", None)))

    def _end(self, exchange: Exchange, now: int, outcome: RequestOutcome, reason: str | None) -> None:
        self._window_open -= self._inside(exchange.planned_ns)
        self._record(exchange, parsed(exchange, self._start + now, outcome, reason))
        self._arrivals.ended(exchange.index, now, failed=not exchange.stamps)

    def _record(self, exchange: Exchange, ended: Parsed) -> None:
        if self._recorder is None:
            self._ended.append((exchange, ended))
            opened, closed = self._arrivals.opened_ns, self._arrivals.closed_ns
            if opened is not None and closed is not None:
                self._begin_recording(Edges(opened, closed, known=True))
        else:
            self._recorder.add(exchange.index, exchange.planned_ns, exchange.planned_ns, ended)

    def _begin_recording(self, edges: Edges) -> Recorder:
        """The edges are known: what has ended until now is recorded, and all else as it ends."""
        if self._planned.load.arrival == "burst":
            edges = Edges(0, (self._arrivals.limit_ns or 0) + 1, known=True)  # until its last end, which is to come
        self._edges = edges
        self._recorder = recorder = Recorder(self._start, edges, self._requests, virtual=True)
        for exchange, ended in self._ended:
            recorder.add(exchange.index, exchange.planned_ns, exchange.planned_ns, ended)
        self._ended.clear()
        return recorder

    # -- the end -----------------------------------------------------------------------------------

    def _conclude(self, now: int) -> CellRecords:
        drained = not self._window_open and self._arrivals.closed_ns is not None
        for uid, exchange in self._open.items():
            self._engine.abort(uid)
            reason = "DrainDeadline" if self._inside(exchange.planned_ns) else "TailClosed"
            self._record(exchange, parsed(exchange, self._start + now, "incomplete", reason))
        recorder = self._recorder or self._begin_recording(self._late_edges(now))
        end = End(
            ended_ns=now,
            drained=drained,
            stopped=False,
            cpu_ns=0,
            spin_ns=0,
            window_cpu_ns=0,
            connections_max=self._most_open,
            descriptors_max=0,
            descriptors_limit=0,
            core_share=1.0,
            retried=0,
            offset_start_ns=0,
            offset_end_ns=0,
        )
        note = self._note.model_copy(
            update={"unique_prompts": self._lengths.unique, "left_out_rows": self._lengths.left_out}
        )
        ran = Ran(note, [end], self._edges, virtual=True)
        return cell_records(ran, recorder.totals, self._requests.asks())

    def _late_edges(self, now: int) -> Edges:
        """Of a cell whose window never opened, or never closed."""
        opened = self._arrivals.opened_ns
        return Edges(now, now, known=False) if opened is None else Edges(opened, now, known=True)
