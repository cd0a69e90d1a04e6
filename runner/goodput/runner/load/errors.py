"""What can go wrong in the load client itself; what the server does wrong is a request's outcome, not an error."""

from __future__ import annotations

from goodput.runner.errors import RunnerError


class LoadError(RunnerError):
    """Base of the load client's errors."""


class TargetError(LoadError):
    """The address cannot be loaded: unknown scheme, no host, no address."""

    reason = "InvalidTarget"
    outcome = "failed"


class PromptError(LoadError):
    """Prompts of the asked lengths cannot be made."""

    reason = "NoPrompts"
    outcome = "failed"


class ScheduleError(LoadError):
    """The planned arrivals cannot be had: a trace that is too short."""

    reason = "NoSchedule"
    outcome = "failed"


class SpoolError(LoadError):
    """A spool folder is damaged or holds no finished cell."""


class WorkerError(LoadError):
    """A worker process did not start, or died."""
