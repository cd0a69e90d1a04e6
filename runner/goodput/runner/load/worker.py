"""The process that sends and receives: ``python -m goodput.runner.load.worker FOLDER INDEX``.

It writes `READY` to standard output, gets one line with the start on standard input (absolute CLOCK_MONOTONIC
ns), runs the cell, and writes its summary. When standard input ends before, it stops: so it never outlives
the trial. Headers, which may hold a key, come as the first line of standard input and are never stored.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import sys
import time
from pathlib import Path

from goodput.runner.load.arrivals import Arrivals, ClosedLoop, OpenLoop
from goodput.runner.load.bodies import Bodies
from goodput.runner.load.clock import offset_ns
from goodput.runner.load.connection import kernel_stamps_work, resolve
from goodput.runner.load.cpus import available_cpus
from goodput.runner.load.exchange import Exchanges
from goodput.runner.load.hot import HotLoop
from goodput.runner.load.job import BODIES, ENTRIES, End, Job, Live, sent_file, spool_file
from goodput.runner.load.pool import Pool
from goodput.runner.load.timer import Timer
from goodput.runner.load.tls import TlsClient

NICE = -10
READY = b"+"  # on standard output
_CONTROL = 0  # standard input


def request_head(job: Job, headers: dict[str, str]) -> bytes:
    """The head of every request, with ``%d`` for the body's length."""
    host = f"[{job.host}]" if ":" in job.host else job.host
    port = "" if job.port == (443 if job.tls else 80) else f":{job.port}"
    lines = [
        f"POST {job.path} HTTP/1.1",
        f"Host: {host}{port}",
        "Content-Type: application/json",
        "Accept: text/event-stream",
        "Accept-Encoding: identity",
        "User-Agent: goodput",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    escaped = "\r\n".join(lines).replace("%", "%%")
    return f"{escaped}\r\nContent-Length: %d\r\n\r\n".encode("latin-1")


def run(folder: Path, index: int) -> None:
    """Run one worker's part of the cell."""
    job = Job.read(folder)
    _prepare_process(job, index)
    headers: dict[str, str] = json.loads(_line())
    kernel_stamps = job.kernel_stamps and kernel_stamps_work()
    live = Live(folder, job.processes)
    arrivals: Arrivals = OpenLoop(job, folder, index) if job.concurrency is None else ClosedLoop(job, live, index)
    poll = select.epoll()
    pool = Pool(
        poll,
        resolve(job.host, job.port),
        spare=job.spare_connections,
        kernel_stamps=kernel_stamps,
        tls=TlsClient(job.host, job.ca_file) if job.tls else None,
    )
    bodies = Bodies(folder / BODIES, folder / ENTRIES, job.first_recycled)
    with (
        (folder / spool_file(index)).open("wb", buffering=0) as spool,
        (folder / sent_file(index)).open("wb") as sent,
    ):
        offset = live.cells[Live.row(index) + Live.OFFSET] = offset_ns()
        exchanges = Exchanges(
            index,
            pool=pool,
            arrivals=arrivals,
            bodies=bodies,
            live=live,
            head=request_head(job, headers),
            spool_file=spool,
            sent_file=sent,
        )
        loop = HotLoop(
            job,
            poll=poll,
            timer=Timer(),
            pool=pool,
            arrivals=arrivals,
            exchanges=exchanges,
            live=live,
            gather=kernel_stamps,
        )
        descriptors = sum(1 for _ in Path("/proc/self/fd").iterdir())
        gc.collect()
        gc.freeze()
        gc.disable()
        pool.refresh(time.monotonic_ns())
        os.write(1, READY)
        start = int(_line())
        poll.register(_CONTROL, select.EPOLLIN)
        cpu = time.process_time_ns()
        loop.run(start, _CONTROL)
        ended = time.monotonic_ns() - start
        exchanges.close_all(stopped=loop.stopped)
    End(
        ended_ns=ended,
        drained=loop.drained,
        stopped=loop.stopped,
        cpu_ns=time.process_time_ns() - cpu,
        spin_ns=loop.spin_ns,
        window_cpu_ns=loop.window_cpu_ns,
        connections_max=pool.highest,
        descriptors_max=descriptors + pool.highest,
        descriptors_limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        core_share=min(1.0, available_cpus() / job.processes),
        retried=exchanges.retried,
        offset_start_ns=offset,
        offset_end_ns=offset_ns(),
    ).write(folder, index)


def _line() -> bytes:
    """One line of standard input, byte by byte: nothing may be left in a buffer that epoll does not see."""
    line = bytearray()
    while (byte := os.read(_CONTROL, 1)) != b"\n":
        if not byte:
            raise SystemExit("standard input ended before the start")
        line += byte
    return bytes(line)


def _prepare_process(job: Job, index: int) -> None:
    if job.cpus:
        os.sched_setaffinity(0, {job.cpus[index % len(job.cpus)]})
    with contextlib.suppress(PermissionError):  # be on time beside a busy server; it needs little
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
