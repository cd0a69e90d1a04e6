"""When to end early: a signal, or the trial's deadline. Every wait of the runner goes through here."""

from __future__ import annotations

import threading
import time

from goodput.runner.errors import StoppedError

RUNNER_STOPPED = "RunnerStopped"
TRIAL_DEADLINE = "TrialDeadline"


class Stop:
    """A flag that can be waited on, with the reason why it was set.

    Args:
        deadline: `time.monotonic` seconds at which it sets itself, reason TrialDeadline; None: never.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self._event = threading.Event()
        self._reason = RUNNER_STOPPED
        self.deadline = deadline

    def set(self, reason: str = RUNNER_STOPPED) -> None:
        """Ask everything to end. The first reason stays."""
        if not self._event.is_set():
            self._reason = reason
            self._event.set()

    @property
    def reason(self) -> str | None:
        """Why to stop, None while there is no reason to."""
        if self._event.is_set():
            return self._reason
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return TRIAL_DEADLINE
        return None

    @property
    def signalled(self) -> bool:
        """Whether somebody asked (the deadline alone does not count)."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep at most ``seconds``; True where it is time to stop."""
        if self.deadline is not None:
            seconds = min(seconds, max(0.0, self.deadline - time.monotonic()))
        self._event.wait(max(0.0, seconds))
        return self.reason is not None

    def rest(self, seconds: float) -> None:
        """Sleep for work that goes on after the deadline: only a new signal cuts it short."""
        if self._event.is_set():
            time.sleep(seconds)
        else:
            self._event.wait(seconds)

    def pause(self, seconds: float) -> None:
        """Sleep, and raise `StoppedError` where it is time to stop."""
        self.wait(seconds)
        self.check()

    def check(self) -> None:
        """Raise `StoppedError` where it is time to stop."""
        if self.reason is not None:
            raise StoppedError(self.reason)
