"""How many events per second of CPU this client can take on this machine, against a built-in sink."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.errors import WorkerError
from goodput.runner.load.job import End, spool_file
from goodput.runner.load.prompts import RandomIds
from goodput.runner.load.run import LoadRun
from goodput.runner.load.spool import READ_KERNEL, READ_USER, read_spool
from goodput.runner.load.target import Target

STREAMS = 64
TOKENS = 50
TICK_SECONDS = 0.004
_SINK = "goodput.runner.load.sink"
_NS = 1_000_000_000


@contextmanager
def sink(tick_seconds: float, cpu: int | None = None) -> Iterator[int]:
    """A running sink; gives its port."""
    arguments = [sys.executable, "-P", "-m", _SINK, str(tick_seconds), *([str(cpu)] if cpu is not None else [])]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            if not line.strip().isdigit():
                raise WorkerError("the sink for measuring the client does not start")
            yield int(line)
        finally:
            process.stdin.close()


def measure_ceiling(seconds: float = 1.0) -> float:
    """Events per second of CPU of one worker, sending included: what a core of its own could take.

    It is a rate per CPU second, not per wall second, so a sink on the same core does not lower it.
    """
    load = Load(
        prompt_tokens=16,
        output_tokens=TOKENS,
        arrival="closed",
        concurrency=STREAMS,
        window_seconds=seconds,
    )
    plan = PlannedLoad(load=load, seed=0, lead_in_seconds=0, drain_seconds=10)
    with tempfile.TemporaryDirectory() as name, sink(TICK_SECONDS) as port:
        folder = Path(name)
        target = Target.of(f"http://127.0.0.1:{port}", "sink", "completions")
        run = LoadRun(plan, target, RandomIds(range(1000), 0), folder)
        run.start()
        try:
            if not run.wait(seconds + 60):
                raise WorkerError("measuring the client took too long")
        finally:
            run.close()
        end = End.read(folder, 0)
        kinds = [kind for _, kind, _, _ in read_spool(folder / spool_file(0), 0)]
    if end is None or end.cpu_ns <= end.spin_ns:
        raise WorkerError("measuring the client gave no result")
    reads = sum(kind in {READ_KERNEL, READ_USER} for kind in kinds)
    return reads * _NS / (end.cpu_ns - end.spin_ns)
