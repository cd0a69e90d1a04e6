"""Many streams for minutes: does the load client stay small?"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from bench.client.closed import SERVER_CPU, begin, closed_loop

from goodput.runner.load.ceiling import sink

TICK_SECONDS = 0.05
TOKENS = 64
PROMPT_TOKENS = 64
_SAMPLE_SECONDS = 5.0
_COLLECT = """
import sys
from pathlib import Path
from goodput.runner.load.collect import collect
cell = collect(Path(sys.argv[1]))
print(cell.client.events, cell.requests.num_rows, flush=True)
"""


@dataclass
class Memory:
    """Resident MiB of a process over time."""

    seconds: list[float] = field(default_factory=list)
    mib: list[float] = field(default_factory=list)

    def add(self, at: float, process: psutil.Process) -> None:
        """One sample; a process that has ended gives none."""
        try:
            resident = process.memory_info().rss
        except psutil.NoSuchProcess:
            return
        if resident:
            self.seconds.append(at)
            self.mib.append(resident / 2**20)

    def growth(self) -> float | None:
        """MiB from the first fifth of the time (then everything has been used once) to the end."""
        later = [mib for at, mib in zip(self.seconds, self.mib, strict=True) if at >= self.seconds[-1] / 5]
        return later[-1] - later[0] if later else None


@dataclass(frozen=True)
class Steady:
    """What the run took."""

    worker: Memory
    collector: Memory
    events: int
    requests: int
    spool_bytes: int


def steady(streams: int, seconds: float) -> Steady:
    """A closed loop against the built-in sink, 20 events per second and stream; then its spool is read."""
    plan = closed_loop(streams, seconds, prompt_tokens=PROMPT_TOKENS, output_tokens=TOKENS)
    with tempfile.TemporaryDirectory(prefix="goodput-soak-") as name:
        folder = Path(name)
        worker = Memory()
        with sink(TICK_SECONDS, SERVER_CPU) as port:
            run = begin(plan, f"http://127.0.0.1:{port}", "sink", folder)
            process = _worker(folder)
            began = time.monotonic()
            while not run.wait(_SAMPLE_SECONDS):
                worker.add(time.monotonic() - began, process)
            run.close()
        collector, printed = _collect(folder)
        events, requests = map(int, printed.split())
        spool = sum(path.stat().st_size for path in folder.glob("spool-*"))
    return Steady(worker, collector, events, requests, spool)


def _worker(folder: Path) -> psutil.Process:
    """The process that sends and receives for that folder."""
    return next(child for child in psutil.Process().children() if str(folder) in child.cmdline())


def _collect(folder: Path) -> tuple[Memory, bytes]:
    """Read the spool in a process of its own."""
    memory, begin = Memory(), time.monotonic()
    with subprocess.Popen([sys.executable, "-c", _COLLECT, str(folder)], stdout=subprocess.PIPE) as process:
        watched = psutil.Process(process.pid)
        for _ in _until_ended(process):
            memory.add(time.monotonic() - begin, watched)
        assert process.stdout is not None
        printed = process.stdout.read()
    if process.returncode:
        raise SystemExit("the spool cannot be read")
    return memory, printed


def _until_ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    while True:
        try:
            process.wait(_SAMPLE_SECONDS / 10)
        except subprocess.TimeoutExpired:
            yield
        else:
            return
