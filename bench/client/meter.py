"""Runs one load client as a process tree of its own: CPU, memory and time are those of all its processes."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from testcluster.cgroups import ControlGroup

CLIENT_CPU = 1
_INTERRUPT_SECONDS = 10.0  # what a client gets to write its results after a Ctrl-C

Ended = Literal["ok", "failed", "hangs"]


@dataclass(frozen=True)
class Spent:
    """What a run took.

    Attributes:
        ended: ``hangs``: it did not end by itself and was killed.
        cpu_seconds: of all processes of the tree.
        peak_mib: most memory at once; None: this machine lets nobody account for a process tree.
    """

    ended: Ended
    cpu_seconds: float
    peak_mib: float | None
    wall_seconds: float


class _Group:
    """A control group of one run, version 1 or 2; without the right to make one, none."""

    def __init__(self) -> None:
        self._group = ControlGroup(f"goodput-bench-{os.getpid()}")
        try:
            self._group.make()
        except OSError:
            self._folders: list[Path] = []
        else:
            self._folders = [folder for folder in self._group.groups() if (folder / "cgroup.procs").exists()]

    def enter(self) -> None:
        """Take the calling process in. Runs between fork and exec."""
        for folder in self._folders:
            if (folder / "cpuacct.usage").exists() or (folder / "cgroup.controllers").exists() or _memory(folder):
                (folder / "cgroup.procs").write_text("0")

    def cpu_seconds(self) -> float | None:
        """CPU of all who ever were in it."""
        for folder in self._folders:
            with contextlib.suppress(OSError):
                return int((folder / "cpuacct.usage").read_text()) / 1e9
            with contextlib.suppress(OSError):
                fields = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
                if "usage_usec" in fields:
                    return int(fields["usage_usec"]) / 1e6
        return None

    def peak_mib(self) -> float | None:
        """Most memory that all in it had at once, page cache included."""
        files = [path for folder in self._folders if (path := _memory(folder))]
        return int(files[0].read_text()) / 2**20 if files else None

    def remove(self) -> None:
        """End who is left, and the group."""
        if self._folders:
            self._group.remove()


def _memory(folder: Path) -> Path | None:
    names = ("memory.max_usage_in_bytes", "memory.peak")
    return next((folder / name for name in names if (folder / name).exists()), None)


def run(
    command: Sequence[str],
    *,
    folder: Path,
    limit_seconds: float,
    env: Mapping[str, str] | None = None,
    cpu: int = CLIENT_CPU,
) -> Spent:
    """Run a client pinned to one core; its output goes to ``client.log`` in the folder.

    Past the limit it is interrupted as by Ctrl-C, then killed with all its children.
    """
    group = _Group()

    def enter() -> None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # a client may hold more than a thousand connections
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        os.sched_setaffinity(0, {cpu})
        group.enter()

    before, begin = _children_cpu(), time.monotonic()
    try:
        with (folder / "client.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, **(env or {})},
                start_new_session=True,
                preexec_fn=enter,  # noqa: PLW1509 (this process has one thread)
            )
            ended = _wait(process, limit_seconds)
        wall = time.monotonic() - begin
        cpu_seconds, peak = group.cpu_seconds(), group.peak_mib()
    finally:
        group.remove()
    return Spent(ended, _children_cpu() - before if cpu_seconds is None else cpu_seconds, peak, wall)


def _wait(process: subprocess.Popen[bytes], limit_seconds: float) -> Ended:
    try:
        return "ok" if process.wait(limit_seconds) == 0 else "failed"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_INTERRUPT_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return "hangs"


def _children_cpu() -> float:
    """CPU of all ended children and theirs, where they waited for them."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
