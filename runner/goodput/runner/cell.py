"""One cell against the server: prompts, reset, idle, snapshot, load with scraping, idle, snapshot.

Everything it learns goes into the cell's spool as it happens; `conclude` makes the records from there.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from goodput.analysis.schema.server import PrefixReset
from goodput.runner.contract import PlannedLoad, TrialPlan
from goodput.runner.errors import (
    CacheNotResetError,
    NotIdleError,
    RunnerError,
    ServerGoneError,
    ServerRestartedError,
    StoppedError,
)
from goodput.runner.gpu import INTERVAL_SECONDS as GPU_SECONDS
from goodput.runner.gpu import GpuReader
from goodput.runner.idle import DEADLINE_SECONDS, wait_idle
from goodput.runner.load.cpus import available_cpus
from goodput.runner.load.errors import LoadError
from goodput.runner.load.run import CellRecords, LoadRun, Target
from goodput.runner.load.workers import workers
from goodput.runner.reset import Resetter
from goodput.runner.running import Progress, Running
from goodput.runner.scrape import Scraper
from goodput.runner.server import Server
from goodput.runner.snapshot import Snapshot, read
from goodput.runner.spool import CellSpool, Closing, Opening
from goodput.runner.status import Board
from goodput.runner.stop import Stop
from goodput.runner.workload import Workloads

WATCH_SECONDS = 0.2
ALIVE_SECONDS = 2.0  # between looks at a running cell's server: a dead one need not be loaded to the end
STOP_SECONDS = 15.0  # for the load client to close what is open
EXTERNAL_CACHE = "external server: its prefix cache was not reset, and hits in it are not judged"
NO_CACHE = "the Transformers baseline keeps no prefix cache: there was none to reset"
_log = logging.getLogger(__name__)
_STEPS: dict[str, Literal["lead-in", "measuring", "draining"]] = {
    "lead-in": "lead-in",
    "measuring": "measuring",
    "draining": "draining",
}


@dataclass(frozen=True)
class Bench:
    """What all cells of a trial share.

    Attributes:
        server_start_time: of the process that was verified and warmed; None where it does not say.
        ceiling: events per CPU second that the load client can take in, None where it was not measured.
        follow: live latencies; None: where there is a core for them.
        idle_seconds: how long a server may take to become idle, and to reset its prefix cache.
    """

    plan: TrialPlan
    server: Server
    target: Target
    workloads: Workloads
    board: Board
    stop: Stop
    server_start_time: float | None = None
    ceiling: float | None = None
    processes: int | None = None  # of the load client; None: as many as the load needs
    follow: bool | None = None
    idle_seconds: float = DEADLINE_SECONDS

    def snapshot(self) -> Snapshot:
        """The server's metrics now."""
        return read(self.server.metrics)

    @property
    def resetter(self) -> Resetter:
        """Empties its prefix cache."""
        return Resetter(self.server, self.plan, self.snapshot, self.stop, self.idle_seconds)


def measure(bench: Bench, planned: PlannedLoad, cell: CellSpool) -> tuple[CellRecords | None, RunnerError | None]:
    """Run one cell up to its closing snapshot in the spool.

    Returns:
        The load client's records (None where it left none), and what makes the next load pointless: the
        server is gone or another one, or the runner was asked to stop.
    """
    cell.begin(time.time())
    bench.board.update(step="resetting", load=planned.load.id)
    try:
        run = _prepared(bench, planned, cell)
        opening = _ready(bench)
        cell.open(opening)
        _load(bench, planned, cell, run)
        closing, fatal = _close(bench, told=opening.snapshot.known)
        cell.close(closing)
        return run.collect(), fatal
    except RunnerError as error:
        if isinstance(error, LoadError):
            _log.exception("the load client failed")
        if cell.closing is None:
            cell.close(Closing(reason=error.reason, message=str(error)))
        return None, None if isinstance(error, LoadError | NotIdleError | CacheNotResetError) else error


def _ready(bench: Bench) -> Opening:
    """Empty prefix cache, nothing running, nothing waiting."""
    verdict, warnings = _fresh_cache(bench)
    snapshot = wait_idle(bench.snapshot, bench.stop, deadline_seconds=bench.idle_seconds)
    expected = bench.server_start_time
    if expected is not None and snapshot.start_time is not None and snapshot.start_time != expected:
        raise ServerRestartedError(f"the server's process started at {snapshot.start_time:.3f}, not {expected:.3f}")
    return Opening(snapshot=snapshot, prefix_reset=verdict, warnings=warnings)


def _fresh_cache(bench: Bench) -> tuple[PrefixReset | None, tuple[str, ...]]:
    """Reset the prefix cache, or say why not."""
    if bench.plan.server.external:
        return None, (EXTERNAL_CACHE,)
    return (None, (NO_CACHE,)) if bench.plan.config.kind == "transformers" else bench.resetter.reset()


def _prepared(bench: Bench, planned: PlannedLoad, cell: CellSpool) -> LoadRun:
    """The load with all its requests written. The server counts the tokens of texts, before it is looked at."""
    work = bench.workloads.of(planned)
    run = LoadRun(
        planned,
        bench.target,
        work.prompts,
        cell.load,
        lengths=work.lengths,
        replayed=work.replayed,
        processes=bench.processes or workers(planned.load, bench.ceiling, available_cpus()),
        ceiling=bench.ceiling,
        follow=bench.follow,
    )
    run.prepare()
    return run


def _load(bench: Bench, planned: PlannedLoad, cell: CellSpool, run: LoadRun) -> None:
    """Run the load to its end, or cut it short where nothing can come of it."""
    scraped = bench.server.sibling(timeout_seconds=2.0)
    gpu = _Gpu(bench.plan.server.gpu_metrics_url, cell.gpu)
    scraper = Scraper(lambda: read(scraped.metrics, whole=False), cell.samples)
    run.start()
    scraper.start()
    gpu.start()
    bench.board.metrics.begin(planned, Running(lambda: _progress(run), run.followed, cell.load, run.processes))
    try:
        if not _watch(bench, run):
            run.stop()
            run.wait(STOP_SECONDS)
        run.follow_up()
    finally:
        bench.board.metrics.freeze()
        scraper.stop()
        gpu.stop()
        scraped.close()


class _Gpu:
    """Follows the exporter of the server's node, where one is named."""

    def __init__(self, url: str | None, file: Path) -> None:
        self._reader = None if url is None else GpuReader(url, time.monotonic)
        self._scraper = None if self._reader is None else Scraper(self._reader.read, file, GPU_SECONDS)

    def start(self) -> None:
        if self._scraper is not None:
            self._scraper.start()

    def stop(self) -> None:
        if self._scraper is not None and self._reader is not None:
            self._scraper.stop()
            self._reader.close()


def _progress(run: LoadRun) -> Progress:
    counts = run.live()
    return Progress(counts.sent, counts.ended, counts.failed)


def _watch(bench: Bench, run: LoadRun) -> bool:
    """Follow a run to its end. False: it should be cut short."""
    look = time.monotonic() + ALIVE_SECONDS
    while not run.wait(WATCH_SECONDS):
        step = _STEPS.get(run.phase())
        if step is not None:
            bench.board.update(step=step)
        if bench.stop.reason is not None:
            return False
        if time.monotonic() >= look:
            look = time.monotonic() + ALIVE_SECONDS
            if _dead(bench.server):
                return False
    return True


def _dead(server: Server) -> bool:
    """Whether nothing listens at the server's address, or its engine is dead. Being slow is not being dead."""
    try:
        server.healthy()
    except ServerGoneError as error:
        return not error.slow
    return False


def _close(bench: Bench, *, told: bool) -> tuple[Closing, RunnerError | None]:
    """The closing snapshot, or why there is none."""
    try:
        bench.stop.check()
        idle = wait_idle(bench.snapshot, bench.stop, told=told, deadline_seconds=bench.idle_seconds)
        return Closing(snapshot=idle), None
    except NotIdleError as error:
        return Closing(snapshot=bench.snapshot(), reason=error.reason, message=str(error)), None
    except (ServerGoneError, StoppedError) as error:
        return Closing(reason=error.reason, message=str(error)), error
