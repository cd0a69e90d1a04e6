"""Everything that the runner raises on purpose. ``reason`` is what status, records and the outcome show."""

from __future__ import annotations

from typing import Literal


class RunnerError(Exception):
    """Base of this part's errors.

    Attributes:
        reason: one word for status and records.
        outcome: what it makes of cells that were not begun: ``failed`` where another attempt cannot help.
    """

    reason: str = "RunnerFailed"
    outcome: Literal["void", "failed", "not_run"] = "void"


class PlanError(RunnerError):
    """The trial plan cannot be read or cannot be carried out."""

    reason = "InvalidPlan"
    outcome = "failed"


class ServerGoneError(RunnerError):
    """The server does not answer (any more), or says that its engine is dead.

    Attributes:
        slow: it was connected to and did not answer in time, which busy servers do too.
    """

    reason = "ServerGone"
    outcome: Literal["void", "failed", "not_run"] = "not_run"

    def __init__(self, message: str, *, slow: bool = False) -> None:
        super().__init__(message)
        self.slow = slow


class UnreachableError(ServerGoneError):
    """Nothing answers at an external server's address."""

    reason = "Unreachable"


class TlsFailedError(ServerGoneError):
    """No TLS connection comes about."""

    reason = "TlsFailed"
    outcome = "failed"


class TlsUntrustedError(TlsFailedError):
    """The certificate is of no authority that is trusted."""

    reason = "TlsUntrusted"


class TlsHostnameError(TlsFailedError):
    """The certificate is for another host."""

    reason = "TlsHostname"


class TlsExpiredError(TlsFailedError):
    """The certificate has expired, or is not valid yet."""

    reason = "TlsExpired"


class ServerRestartedError(RunnerError):
    """Another process answers at the server's address: what was warmed is no longer there."""

    reason = "ServerRestarted"
    outcome = "not_run"


class ServerMismatchError(RunnerError):
    """The server is not what the plan says: another model, or a flag that was resolved to something else."""

    reason = "ServerMismatch"
    outcome = "failed"


class RequestRefusedError(RunnerError):
    """The server refuses an ordinary request; the message has its answer."""

    reason = "RequestRefused"
    outcome = "failed"


class RequestsTooLongError(RunnerError):
    """The server's model length has no room for the planned requests: it would refuse or cut every one of them."""

    reason = "RequestsTooLong"
    outcome = "failed"


class KeyRefusedError(RequestRefusedError):
    """The server does not take the API key."""

    reason = "KeyRefused"


class KeyExpiredError(KeyRefusedError):
    """The server says that the API key has expired."""

    reason = "KeyExpired"


class NotOpenAiError(RequestRefusedError):
    """Something answers that is no OpenAI endpoint."""

    reason = "NotOpenAi"


class TokensError(RunnerError):
    """No token ids for prompts: no usable ``/tokenize`` and no tokenIdRange."""

    reason = "NoTokenIds"
    outcome = "failed"


class RunnerLostError(RunnerError):
    """The server has served requests before, and there is no spool that knows of them."""

    reason = "RunnerLost"


class NotIdleError(RunnerError):
    """Requests were still running or waiting at the deadline."""

    reason = "NotIdle"


class CacheNotResetError(RunnerError):
    """The server said that its prefix cache was not reset."""

    reason = "CacheNotReset"


class StoreRefusedError(RunnerError):
    """The store could not be read, so nobody knows which cells are measured already."""

    reason = "UploadDenied"
    outcome = "not_run"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class SpoolFullError(RunnerError):
    """The spool has no room for the next cell."""

    reason = "SpoolFull"
    outcome = "not_run"


class StoppedError(RunnerError):
    """Asked to stop, or the trial's deadline has passed."""

    outcome = "not_run"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
