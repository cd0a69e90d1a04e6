"""Who a process is, and stopping exactly that one.

A process id alone says nothing after a restart or a wrap-around: the number may be a stranger's by now. A
process is therefore remembered with its start time, its boot and its command line, and is signalled through a
pidfd that was opened before those were compared.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Identity:
    """One process of one boot. ``start_ticks`` is field 22 of /proc/PID/stat (clock ticks since boot)."""

    pid: int
    start_ticks: int
    boot_id: str
    argv: tuple[str, ...]


def boot_id() -> str:
    """The kernel's random name of this boot."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot; None when it is gone or a zombie."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def command_line(pid: int) -> tuple[str, ...]:
    """Arguments of a process; empty when it is gone or is a kernel thread."""
    try:
        data = (PROC / str(pid) / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return tuple(part.decode(errors="replace") for part in data.split(b"\0")[:-1])


def is_alive(who: Identity) -> bool:
    """Whether this very process runs, not another one under its number."""
    return start_ticks(who.pid) == who.start_ticks and boot_id() == who.boot_id and command_line(who.pid) == who.argv


def write_pid_file(path: Path, pid: int, argv: list[str]) -> Identity:
    """Remember a process that was just started with ``argv``."""
    who = Identity(pid, start_ticks(pid) or 0, boot_id(), tuple(argv))
    path.write_text(json.dumps(asdict(who)))
    return who


def read_pid_file(path: Path) -> Identity | None:
    """The process that a pid file names; None when there is no file, or it was cut short."""
    try:
        data = json.loads(path.read_text())
        return Identity(int(data["pid"]), int(data["start_ticks"]), data["boot_id"], tuple(data["argv"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def send(who: Identity, number: signal.Signals) -> bool:
    """Signal this very process; False when it is gone."""
    try:
        fd = os.pidfd_open(who.pid)
    except (ProcessLookupError, OSError):
        return False
    try:
        if not is_alive(who):
            return False
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
    return True


def wait_gone(pid: int, timeout_s: float) -> bool:
    """Wait until a process has ended; False after ``timeout_s`` seconds."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        return bool(select.select([fd], [], [], timeout_s)[0])
    finally:
        os.close(fd)


def stop(who: Identity, grace_s: float) -> None:
    """End this very process: SIGTERM, and SIGKILL when it is still there after ``grace_s`` seconds."""
    if send(who, signal.SIGTERM) and not wait_gone(who.pid, grace_s):
        send(who, signal.SIGKILL)
        wait_gone(who.pid, 10.0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(who.pid, os.WNOHANG)


def everyone() -> Iterator[Identity]:
    """All processes that have a command line."""
    boot = boot_id()
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            pid = int(entry.name)
            argv, begin = command_line(pid), start_ticks(pid)
            if argv and begin is not None:
                yield Identity(pid, begin, boot, argv)


def ours(programs: frozenset[str], folder: Path) -> list[Identity]:
    """Processes of these programs (by base name) with arguments that name ``folder``."""
    mark = f"{folder}/"
    return [
        who
        for who in everyone()
        if Path(who.argv[0]).name in programs and any(mark in argument for argument in who.argv[1:])
    ]
