"""What became of a request that has ended (pure).

Failure must never look like success: a request is completed only when HTTP 200, a finish reason, ``[DONE]``
and the asked number of tokens are all there, and nothing says otherwise.
"""

from __future__ import annotations

import errno
from typing import NamedTuple

from goodput.analysis.schema.base import RequestOutcome
from goodput.runner.load import spool
from goodput.runner.load.events import GOOD_FINISHES, StreamState
from goodput.runner.load.framing import EVENT_STREAM, PLAIN_ENCODINGS, Framing
from goodput.runner.load.tls import TLS_CUT, TLS_FAILED

_CONNECT_REASONS = {
    errno.ECONNREFUSED: "ConnectRefused",
    errno.ETIMEDOUT: "ConnectTimeout",
    TLS_FAILED: "TlsFailed",
}
_BREAK_REASONS = {TLS_FAILED: "TlsFailed", TLS_CUT: "Truncated"}


class Counted(NamedTuple):
    """Of the output: tokens as asked and as they came (None: not known), and whether any has a time."""

    asked: int
    total: int | None
    timed: bool
    miscounted: bool  # tokens came in usage that no choice came with


def verdict(
    kind: int, body: bytes, framing: Framing, state: StreamState, counted: Counted
) -> tuple[RequestOutcome, str | None]:
    """Outcome and reason; ``kind`` and ``body``: of the spool record that ended the exchange."""
    if kind == spool.NOT_SENT:
        return "not_sent", body.decode()
    refusal = _refusal(framing, state)
    if refusal is not None:
        return "failed", refusal
    # A body that ends with its connection has no end where that broke.
    if not state.complete or (kind == spool.BROKEN and framing.endless):
        broken = _transport(kind, body, framing)
        if broken is not None:
            return broken
    wrong = _content(framing, state, counted)
    return ("completed", None) if wrong is None else ("failed", wrong)


def _refusal(framing: Framing, state: StreamState) -> str | None:
    """What makes it a failure however it ended."""
    head = framing.head
    if framing.error is not None or head is None:
        return framing.error
    return _first(
        (head.status != 200, f"Http{head.status}"),
        (head.encoding not in PLAIN_ENCODINGS, "UnexpectedEncoding"),
        (head.content_type != EVENT_STREAM, "NotEventStream"),
        (framing.extra, "MalformedHttp"),
        (state.error is not None, "StreamError"),
        (state.finish is not None and state.finish not in GOOD_FINISHES, "Aborted"),
    )


def _transport(kind: int, body: bytes, framing: Framing) -> tuple[RequestOutcome, str] | None:
    """How the exchange ended before the stream did; None: properly."""
    if kind == spool.CLOSED:
        return "incomplete", body.decode()
    if kind == spool.BROKEN:
        code, stage = spool.BROKEN_BODY.unpack(body)
        if stage == spool.STAGE_CONNECT:
            return "failed", _CONNECT_REASONS.get(code, "ConnectFailed")
        return "failed", _BREAK_REASONS.get(code, "Reset")
    wrong = _first((framing.head is None, "ClosedBeforeAnswer"), (not framing.whole(kind), "Truncated"))
    return ("failed", wrong) if wrong is not None else None


def _content(framing: Framing, state: StreamState, counted: Counted) -> str | None:
    """Why a stream that ended properly is no success."""
    asked, total = counted.asked, counted.total
    return _first(
        (state.malformed or framing.junk, "MalformedEvent"),
        (not state.events and not state.done, "EmptyResponse"),
        (state.finish is None, "NoFinishReason"),
        (not state.done, "NoDone"),
        (state.inconsistent or counted.miscounted, "UsageMismatch"),
        (total is None, "LengthUnknown"),
        (total is not None and total < asked, "ShortOutput"),
        (total is not None and total > asked, "LongOutput"),
        (not counted.timed, "NoTokenTimes"),
    )


def _first(*checks: tuple[bool, str]) -> str | None:
    """The reason of the first check that objects."""
    return next((reason for wrong, reason in checks if wrong), None)
