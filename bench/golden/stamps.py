"""When bytes arrived, by the kernel's word: a server that is busy must not call its clients late."""

from __future__ import annotations

import contextlib
import socket
import struct
import time

from goodput.runner.load.clock import offset_ns

ANCILLARY_BYTES = 128
_SO_TIMESTAMPNS = 35  # Linux: its number is also the kind of the ancillary message
_TIMESPEC = struct.Struct("qq")
_SECOND = 1_000_000_000


class Stamps:
    """Switches the kernel's stamps on and reads them.

    Args:
        listener: the sockets that it accepts have the stamps, too, from their first byte on.
    """

    def __init__(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # a platform without: `of` then takes the time itself
            listener.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._offset_ns = offset_ns()

    def of(self, ancillary: list[tuple[int, int, bytes]]) -> tuple[int, bool]:
        """CLOCK_MONOTONIC ns when the last byte of a read arrived, and whether the kernel says so; else it is now.

        Of several segments that one read takes, the kernel gives the last one's stamp.
        """
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                seconds, nanoseconds = _TIMESPEC.unpack(data)
                return seconds * _SECOND + nanoseconds - self._offset_ns, True
        return time.monotonic_ns(), False
