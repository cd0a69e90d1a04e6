"""What the local driver raises on purpose."""

from __future__ import annotations


class LocalError(Exception):
    """Base of all errors of the local driver."""


class BusyError(LocalError):
    """Another driver works in the same state folder."""


class StartError(LocalError):
    """A child could not be started: its program is missing or cannot be run."""
