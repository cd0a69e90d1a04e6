"""Waiting for what happens next: a child that ends, a signal to stop, or time. No polling for these."""

from __future__ import annotations

import select
import signal
import socket
from types import FrameType, TracebackType
from typing import Self

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Wake:
    """While entered, SIGINT and SIGTERM are counted in ``stops``, and they and SIGCHLD end `wait`.

    Only in the main thread. The handlers that were there are put back on exit.
    """

    def __init__(self) -> None:
        self.stops = 0
        self._old: dict[int, object] = {}
        self._old_fd = -1
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def __enter__(self) -> Self:
        self._old_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            self._old[number] = signal.signal(number, self._stop if number in STOP_SIGNALS else _nothing)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # as it was given
        signal.set_wakeup_fd(self._old_fd)
        self._reader.close()
        self._writer.close()

    def wait(self, seconds: float) -> None:
        """Return once something happened, or after ``seconds``."""
        ready, _, _ = select.select([self._reader], [], [], max(0.0, seconds))
        if ready:
            self._reader.recv(4096)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.stops += 1


def _nothing(number: int, frame: FrameType | None) -> None:
    """A handler must be there for the signal to be written to the wake-up socket."""
    del number, frame
