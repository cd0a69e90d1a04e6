"""A timer that wakes an epoll at an absolute time, to the microsecond (Linux timerfd; standard library only).

epoll's own timeout counts whole milliseconds. Python has timerfd from 3.13 on; until then it is called in libc.
"""

from __future__ import annotations

import ctypes
import os
import struct

_CLOCK_MONOTONIC = 1
_TFD_NONBLOCK = os.O_NONBLOCK
_TFD_CLOEXEC = os.O_CLOEXEC
_TFD_TIMER_ABSTIME = 1
_ITIMERSPEC = struct.Struct("qqqq")  # interval s, ns; expiry s, ns
_SECOND = 1_000_000_000


class Timer:
    """One timer. Arming it again also takes back that it is due.

    Attributes:
        descriptor: readable from the armed time on; register it edge-triggered, nothing needs to read it.
    """

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_NONBLOCK | _TFD_CLOEXEC)
        if self.descriptor < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        self._set = libc.timerfd_settime
        self._buffer = ctypes.create_string_buffer(_ITIMERSPEC.size)

    def arm(self, monotonic_ns: int) -> None:
        """Be due at that time, or at once where it has passed."""
        seconds, nanoseconds = divmod(max(1, monotonic_ns), _SECOND)
        _ITIMERSPEC.pack_into(self._buffer, 0, 0, 0, seconds, nanoseconds)
        if self._set(self.descriptor, _TFD_TIMER_ABSTIME, self._buffer, None) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.descriptor)
