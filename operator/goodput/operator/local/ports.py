"""TCP ports of the children: kept free until they listen, and whose process it is that answers there (Linux)."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

import psutil

HOST = "127.0.0.1"


class Port:
    """A free port. Until it is released the kernel gives it to no other process that asks for any port.

    The bound socket never listens, so a child that sets SO_REUSEADDR, as every engine does, can bind and listen
    there. A process that asks for this very number with SO_REUSEADDR can still take it: see `stranger`.
    """

    def __init__(self) -> None:
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._held.bind((HOST, 0))
        self.number = int(self._held.getsockname()[1])

    def release(self) -> None:
        """The child listens, or never will."""
        self._held.close()

    def stranger(self, group: int) -> str | None:
        """Who answers at the port, where that is not the process group alone; None where it is.

        A socket of another user's process has no owner that can be seen.
        """
        listening = [
            connection.pid
            for connection in psutil.net_connections("tcp4")
            if connection.status == psutil.CONN_LISTEN and connection.laddr == (HOST, self.number)
        ]
        if not listening:
            return "another process, at all addresses of this machine"
        return next((_named(pid) for pid in listening if pid is None or not _in_group(pid, group)), None)


def _in_group(pid: int, group: int) -> bool:
    with suppress(ProcessLookupError):
        return os.getpgid(pid) == group
    return False


def _named(pid: int | None) -> str:
    with suppress(psutil.Error):
        return f"another process, {psutil.Process(pid).name()} ({pid})" if pid is not None else "another user's process"
    return f"another process ({pid})"
