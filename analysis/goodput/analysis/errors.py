"""Everything that analysis raises on purpose: one tree, so that callers can catch one class."""

from __future__ import annotations


class AnalysisError(Exception):
    """Base of this part's errors; the message is meant for the person who runs the sweep."""


class RecordError(AnalysisError):
    """A stored document or table cannot be trusted or understood; the message names the key."""


class ChecksumError(RecordError):
    """A file's bytes are not those that its commit names."""


class VersionError(RecordError):
    """A document was written by a newer version than this one can read."""


class EvidenceError(RecordError):
    """Measured and synthetic records lie in one sweep; they are never mixed."""


class SweepNotFoundError(AnalysisError):
    """The URI holds no sweep (no ``spec.json``), or more than one."""
