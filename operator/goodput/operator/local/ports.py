"""TCP ports of the children: kept free until they listen, and whose process it is that answers there (Linux)."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

import psutil

HOST = "127.0.0.1"
_HERE = frozenset({HOST, f"::ffff:{HOST}"})
_EVERYWHERE = frozenset({"0.0.0.0", "::", "::ffff:0.0.0.0"})  # noqa: S104  # who listens there is asked, nothing bound


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

    def stranger(self, leader: int) -> str | None:
        """Who answers at the port, where that is not the child with this number, its group or what it started.

        None where it is, or where this machine does not tell. A listener at `HOST` comes before one at all addresses.
        A socket of another user's process has no owner that can be seen.
        """
        try:
            listening = [each for each in psutil.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
        except (psutil.Error, OSError):
            return None

        def at(addresses: frozenset[str]) -> list[int | None]:
            places = {(address, self.number) for address in addresses}
            return [each.pid for each in listening if each.laddr in places]

        answering = at(_HERE) or at(_EVERYWHERE)
        if not answering:
            return "another process, which this machine does not show"
        return next((_named(pid) for pid in answering if pid is None or not _is_of(pid, leader)), None)


def _is_of(pid: int, leader: int) -> bool:
    """Of its group, or started by it: a script may give its server a group or a session of its own."""
    with suppress(ProcessLookupError):
        if os.getpgid(pid) == leader:
            return True
    with suppress(psutil.Error):
        return any(parent.pid == leader for parent in psutil.Process(pid).parents())
    return False


def _named(pid: int | None) -> str:
    with suppress(psutil.Error):
        return f"another process, {psutil.Process(pid).name()} ({pid})" if pid is not None else "another user's process"
    return f"another process ({pid})"
