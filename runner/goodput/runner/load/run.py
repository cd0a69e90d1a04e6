"""The door to the load client: one `LoadRun` per cell.

Everything of a cell lies in its folder: requests, schedule, spool, summaries. `collect` turns it into records,
in this process or, with `recover`, in a later one. `ceiling.measure_ceiling` says what this client can take.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from goodput.runner.contract import PlannedLoad
from goodput.runner.load.cell import CellNote, CellRecords
from goodput.runner.load.clock import offset_ns
from goodput.runner.load.collect import collect as collect_folder
from goodput.runner.load.collect import finished
from goodput.runner.load.cpus import available_cpus
from goodput.runner.load.errors import LoadError, WorkerError
from goodput.runner.load.follow import read_followed
from goodput.runner.load.job import CELL, PLANNED, Job, Live
from goodput.runner.load.latencies import Followed
from goodput.runner.load.lengths import Lengths, PlannedLengths
from goodput.runner.load.parse import CountTokens
from goodput.runner.load.prepare import Prepared, write_requests
from goodput.runner.load.process import READY_SECONDS, FollowerProcess, Worker
from goodput.runner.load.processes import NANOSECONDS, Times
from goodput.runner.load.prompts import FittedText, PromptSource, RandomIds, TextSource
from goodput.runner.load.schedule import Schedule, draw, schedule_sha256
from goodput.runner.load.target import Target

__all__ = [
    "CellRecords",
    "FittedText",
    "LiveCounts",
    "LoadError",
    "LoadRun",
    "Phase",
    "PromptSource",
    "RandomIds",
    "Target",
    "TextSource",
    "recover",
]

Phase = Literal["preparing", "lead-in", "measuring", "draining", "ended"]

HEAD_START_SECONDS = 0.15  # between the workers' word that they are ready and the cell's start
SPARE_SECONDS = 0.1  # connections are opened ahead for the arrivals of this time
MIN_SPARE = 2
MAX_SPARE = 256
FOLLOW_SECONDS = 10.0  # for the follower to read the rest once the cell has ended


@dataclass(frozen=True)
class LiveCounts:
    """So far: arrivals planned, requests taken up, requests ended, and of these: without a 200."""

    planned: int
    sent: int
    ended: int
    failed: int


class LoadRun:
    """One cell's load.

    Args:
        plan: the load, its seed, lead-in and drain time.
        target: the endpoint.
        prompts: must be a `TextSource` for chat.
        lengths: of the requests; without them those that the load names.
        replayed: times of a trace, for ``arrival: replay``; ascending from 0, at the planned speed.
        folder: empty or new; holds all files of the cell.
        processes: workers, each with its share of the one schedule.
        cpus: cores the workers are pinned to, in turn.
        ceiling: events per CPU second from `measure_ceiling`, for the record.
        count_tokens: counts the tokens of a text, for servers that send no usage.
        follow: parse the spool while the cell runs, in another process. None: where there is a core for it.
    """

    def __init__(
        self,
        plan: PlannedLoad,
        target: Target,
        prompts: PromptSource,
        folder: Path,
        *,
        lengths: Lengths | None = None,
        replayed: Times | None = None,
        processes: int = 1,
        cpus: Sequence[int] | None = None,
        ceiling: float | None = None,
        count_tokens: CountTokens | None = None,
        follow: bool | None = None,
    ) -> None:
        self._plan, self._target, self._prompts, self._folder = plan, target, prompts, folder
        self._lengths = lengths or PlannedLengths(plan.load, plan.seed)
        self._replayed = replayed
        concurrency = plan.load.concurrency
        self._processes = min(processes, concurrency) if concurrency is not None else processes
        self._cpus = tuple(cpus or ())
        self._ceiling = ceiling
        self._count_tokens = count_tokens
        self._schedule: Schedule | None = None
        self._prepared: Prepared | None = None
        self._workers: list[Worker] = []
        self._follow = core_to_spare(self._processes) if follow is None else follow
        self._follower: FollowerProcess | None = None
        self._live: Live | None = None
        self._start_ns = 0

    def prepare(self) -> None:
        """Draw the schedule and write all requests; the server may be asked for the tokens of texts.

        Raises:
            LoadError: prompts cannot be made, or a trace is too short.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._schedule = draw(self._plan, self._replayed) if self._plan.load.open_loop else None
        self._prepared = write_requests(
            self._plan,
            self._schedule,
            self._prompts,
            self._lengths,
            endpoint=self._target.endpoint,
            model=self._target.model,
            folder=self._folder,
        )
        if self._schedule is not None:
            (self._folder / PLANNED).write_bytes(self._schedule.planned_ns.astype("<i8").tobytes())

    def start(self) -> None:
        """Start the workers, after `prepare` where that was not called; returns when the cell's clock runs.

        Raises:
            LoadError: as `prepare`, or a worker does not start.
        """
        if self._prepared is None:
            self.prepare()
        assert self._prepared is not None
        self._job(self._prepared).write(self._folder)
        self._live = Live(self._folder, self._processes, create=True)
        try:
            self._start_workers(self._prepared)
        except BaseException:
            for worker in self._workers:
                worker.kill()
            raise

    def _start_workers(self, prepared: Prepared) -> None:
        for index in range(self._processes):
            self._workers.append(Worker(self._folder, index, self._target.headers))
        deadline = time.monotonic() + READY_SECONDS
        for worker in self._workers:
            worker.wait_ready(deadline)
        self._start_ns = time.monotonic_ns() + round(HEAD_START_SECONDS * NANOSECONDS)
        note = CellNote(
            plan=self._plan,
            endpoint=self._target.endpoint,
            start_monotonic_ns=self._start_ns,
            started_unix=(self._start_ns + offset_ns()) / NANOSECONDS,
            schedule_sha256=schedule_sha256(self._schedule, prepared.lengths),
            prompts_sha256=prepared.prompts_sha256,
            ceiling_events_per_second=self._ceiling,
            unique_prompts=self._lengths.unique,
            left_out_rows=self._lengths.left_out,
        )
        (self._folder / CELL).write_bytes(note.to_json())
        assert self._live is not None
        self._live.cells[Live.START] = self._start_ns
        for worker in self._workers:
            worker.start(self._start_ns)
        if self._follow:
            self._follower = FollowerProcess(self._folder)

    def _job(self, prepared: Prepared) -> Job:
        load, schedule = self._plan.load, self._schedule
        drain = round(self._plan.drain_seconds * NANOSECONDS)
        lead_in = round(self._plan.lead_in_seconds * NANOSECONDS)
        window = None if load.window_seconds is None else round(load.window_seconds * NANOSECONDS)
        return Job(
            host=self._target.host,
            port=self._target.port,
            path=self._target.path,
            processes=self._processes,
            cpus=self._cpus,
            first_recycled=prepared.first_recycled,
            opened_ns=schedule.opened_ns if schedule is not None else 0,
            closed_ns=schedule.closed_ns if schedule is not None else 0,
            deadline_ns=schedule.deadline_ns if schedule is not None else 0,
            concurrency=load.concurrency if schedule is None else None,
            window_ns=window,
            window_requests=load.window_requests,
            lead_in_limit_ns=lead_in + drain,
            drain_ns=drain,
            spare_connections=min(MAX_SPARE, MIN_SPARE + round(self._ahead() / self._processes)),
            burst=load.arrival == "burst",
            tls=self._target.tls,
            ca_file=self._target.ca_file,
        )

    def _ahead(self) -> float:
        """Connections that are opened before they are needed: for what is due at once."""
        load, schedule = self._plan.load, self._schedule
        if load.arrival == "burst":
            return float(load.window_requests or 0)
        if load.arrival == "replay" and schedule is not None:
            return len(schedule.planned_ns) / (schedule.deadline_ns / NANOSECONDS) * SPARE_SECONDS
        return load.concurrency or (load.highest_rate or 0.0) * SPARE_SECONDS

    @property
    def processes(self) -> int:
        """Workers: those asked for, as far as each gets something to do."""
        return self._processes

    def phase(self) -> Phase:
        """Where the cell is; cheap."""
        if self._live is None or not self._start_ns:
            return "preparing"
        if all(worker.ended() for worker in self._workers):
            return "ended"
        now = time.monotonic_ns() - self._start_ns
        if self._schedule is not None:
            opened, closed = self._schedule.opened_ns, self._schedule.closed_ns
        else:
            opened, closed = self._live.cells[Live.OPENED], self._live.cells[Live.CLOSED]
            opened, closed = opened or now + 1, closed or now + 1
        if now < opened:
            return "lead-in"
        if self._plan.load.arrival == "burst":
            return "measuring"
        return "measuring" if now < closed else "draining"

    def live(self) -> LiveCounts:
        """Counts so far; cheap."""
        if self._live is None:
            return LiveCounts(0, 0, 0, 0)
        sent, ended = self._live.total(Live.SENT), self._live.total(Live.ENDED)
        planned = sent
        if self._schedule is not None and self._start_ns:
            now = time.monotonic_ns() - self._start_ns
            planned = max(sent, int(np.searchsorted(self._schedule.planned_ns, now, side="right")))
        return LiveCounts(planned, sent, ended, self._live.total(Live.FAILED))

    def followed(self) -> Followed | None:
        """Latencies so far; None where nothing follows the cell, or has not come so far."""
        return read_followed(self._folder) if self._follow else None

    def follow_up(self) -> None:
        """Let the follower come to the end of the spool of a cell that has ended."""
        if self._follower is not None:
            self._follower.finish(FOLLOW_SECONDS)
            self._follower = None

    def stop(self) -> None:
        """Close the open requests and end the cell now; then `wait` and, if wanted, `collect`."""
        for worker in self._workers:
            worker.stop()

    def wait(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds for the end. Raises `WorkerError` when a worker died."""
        deadline = time.monotonic() + timeout
        for worker in self._workers:
            if not worker.wait(max(0.0, deadline - time.monotonic())):
                return False
        self._check()
        return True

    def _check(self) -> None:
        failures = [failure for worker in self._workers if (failure := worker.failure())]
        if failures:
            for worker in self._workers:
                worker.kill()
            raise WorkerError("; ".join(failures))

    def collect(self) -> CellRecords:
        """Parse the spool of the ended cell. Raises `LoadError` when a worker died or is still running."""
        if not all(worker.ended() for worker in self._workers):
            raise LoadError("the cell has not ended")
        self._check()
        self.close()
        return collect_folder(self._folder, self._count_tokens)

    def close(self) -> None:
        """Give pipes and memory back; workers that still run are stopped. The folder stays."""
        if self._follower is not None:
            self._follower.finish(0)
            self._follower = None
        for worker in self._workers:
            worker.close()
        if self._live is not None and all(worker.ended() for worker in self._workers):
            self._live.close()
            self._live = None


def core_to_spare(processes: int) -> bool:
    """Whether there is a core besides those of the workers and one for whatever else there is."""
    return available_cpus() >= processes + 2


def recover(folder: Path, count_tokens: CountTokens | None = None) -> CellRecords | None:
    """The cell that an earlier process left in its folder; None if it did not finish."""
    return collect_folder(folder, count_tokens) if finished(folder) else None
