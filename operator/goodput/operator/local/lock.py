"""One driver per state folder, one simulation per folder of results."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from goodput.operator.local.errors import BusyError


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the folder's lock. It goes with the process, however that ends. Raises `BusyError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _taken(handle):
            holder = os.read(handle, 32).decode(errors="replace").strip()
            who = f"process {holder}" if holder else "another process"
            raise BusyError(f"{who} runs this sweep already (lock {path})")
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the folder itself, which must exist: nothing is left in it. Raises `BusyError`.

    Where the file system locks no folders (NFS answers EBADF, as it locks only what is open for writing), nobody looks.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            taken = _taken(handle)
        except OSError:
            taken = True
        if not taken:
            raise BusyError(f"another process writes to {folder} now; wait for its end, or name another folder")
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
