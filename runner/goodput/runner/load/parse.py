"""From the bytes of one response to one verdict, whatever the reads' boundaries were (pure).

Failure must never look like success: a request is completed only when HTTP 200, a finish reason, ``[DONE]``
and the asked number of tokens are all there, and nothing says otherwise.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass

from goodput.analysis.schema.base import RequestOutcome
from goodput.runner.load import spool
from goodput.runner.load.chunks import ChunkDecoder
from goodput.runner.load.events import GOOD_FINISHES, StreamState
from goodput.runner.load.http_head import HEAD_END, MAX_HEAD_BYTES, Head, HeadError, parse_head
from goodput.runner.load.sse import Event, SseDecoder
from goodput.runner.load.template import Common, CommonReads
from goodput.runner.load.tls import TLS_CUT, TLS_FAILED
from goodput.runner.load.tokens import Arrived, Gaps

CountTokens = Callable[[str], int]
WAITING = 64  # reads of one response that are parsed at once, at most: some 20 kB
_EVENT_STREAM = "text/event-stream"
_PLAIN = frozenset({"", "identity"})
_CONNECT_REASONS = {
    errno.ECONNREFUSED: "ConnectRefused",
    errno.ETIMEDOUT: "ConnectTimeout",
    TLS_FAILED: "TlsFailed",
}
_BREAK_REASONS = {TLS_FAILED: "TlsFailed", TLS_CUT: "Truncated"}


@dataclass(frozen=True, slots=True)
class Parsed:
    """What became of one request. Stamps: CLOCK_MONOTONIC ns; None: did not happen or is not known.

    Attributes:
        source: how tokens were counted: continuous_usage; events (one token each); usage, tokenizer (total only);
            text (there was some, its length is not known); none.
        end_ns: when the response ended, or was given up.
        gaps: None where the arrival of single tokens is not known.
        arrived: tokens by read, for delivery inside the window.
        kernel: every token-carrying read has the kernel's stamp.
        events: server-sent events with choices, usage or an error.
    """

    outcome: RequestOutcome
    reason: str | None
    status: int | None
    first_ns: int | None
    last_ns: int | None
    end_ns: int
    prompt_tokens: int | None
    output_tokens: int | None
    source: str
    gaps: Gaps | None
    arrived: Arrived
    kernel: bool
    events: int

    def delivered(self, opened_ns: int, closed_ns: int) -> int:
        """Tokens that arrived in [opened, closed); in proportion to the text where only their sum is known."""
        within = self.arrived.within(opened_ns, closed_ns)
        if self.gaps is not None or self.output_tokens is None or not self.arrived.total:
            return within
        return round(within * self.output_tokens / self.arrived.total)


class ResponseParser:
    """Takes the spool records of one request in order.

    Args:
        output_tokens: as asked.
        count_tokens: counts the tokens of a whole text, for servers that send no usage.
    """

    __slots__ = (
        "_asked", "_by_rise", "_by_text", "_chunks", "_common", "_count_tokens", "_extra", "_framing_error", "_head",
        "_head_bytes", "_kernel", "_left", "_sse", "_stamp", "_state", "_waiting", "_waiting_kernel",
        "_waiting_stamps", "_wrong",
    )  # fmt: skip

    def __init__(self, output_tokens: int, count_tokens: CountTokens | None = None) -> None:
        self._asked = output_tokens
        self._count_tokens = count_tokens
        self.restart()

    def restart(self) -> None:
        """Forget everything: the request was sent again on a fresh connection."""
        self._head: Head | None = None
        self._head_bytes = b""
        self._chunks: ChunkDecoder | None = None
        self._left: int | None = None
        self._sse = SseDecoder()
        self._state = StreamState()
        self._by_rise, self._by_text = Arrived(), Arrived()
        self._stamp = 0
        self._kernel = True
        self._framing_error: str | None = None
        self._extra = False
        self._wrong = False
        self._common: CommonReads | None = None  # where the next byte begins a chunk and an event
        self._waiting: list[bytes] = []  # reads that may be common ones
        self._waiting_stamps: list[int] = []
        self._waiting_kernel = True

    def read(self, data: bytes, stamp: int, *, kernel: bool) -> None:
        """One read of the response. Where the next one may be a common one, they are kept and parsed together."""
        if self._waiting and (kernel != self._waiting_kernel or len(self._waiting) == WAITING):
            self._parse_waiting()
        if self._common is None:
            self._read(data, stamp, kernel=kernel)
        else:
            self._waiting.append(data)
            self._waiting_stamps.append(stamp)
            self._waiting_kernel = kernel

    def _parse_waiting(self) -> None:
        """Parse what was kept: as many reads at once as have the common form, the one behind them by itself."""
        reads, stamps, kernel, at = self._waiting, self._waiting_stamps, self._waiting_kernel, 0
        while at < len(reads):
            if self._common is not None:
                at += self._take_common(self._common.match(reads[at:]), stamps[at:], kernel=kernel)
            if at < len(reads):
                self._read(reads[at], stamps[at], kernel=kernel)
                at += 1
        self._waiting, self._waiting_stamps = [], []

    def _take_common(self, found: Common, stamps: list[int], *, kernel: bool) -> int:
        """How many reads that were."""
        count = len(found.texts)
        if count:
            rises, texts = self._state.take_common(found), [1 if text else 0 for text in found.texts]
            self._by_rise.singles(stamps[:count], rises)
            self._by_text.singles(stamps[:count], texts)
            self._stamp = stamps[count - 1]
            self._kernel = self._kernel and (kernel or not (any(rises) or any(texts)))
        return count

    def _read(self, data: bytes, stamp: int, *, kernel: bool) -> None:
        self._stamp = stamp
        self._by_rise.next_read()
        self._by_text.next_read()
        tokens = self._by_rise.total + self._by_text.total
        if self._framing_error is None:
            try:
                self._bytes(data)
            except HeadError:
                self._framing_error = "MalformedHttp"
        if not kernel and self._by_rise.total + self._by_text.total > tokens:
            self._kernel = False
        chunks = self._chunks
        between = chunks is not None and chunks.between and chunks.error is None and self._sse.between
        self._common = self._state.common if between else None

    def _bytes(self, data: bytes) -> None:
        if self._head is None:
            data = self._take_head(data)
            if self._head is None:
                return
        if self._chunks is not None:
            data = self._chunks.feed(data)
            if self._chunks.error is not None:
                self._framing_error = "MalformedChunk"
        elif self._left is not None:
            self._extra = self._extra or len(data) > self._left
            data = data[: self._left]
            self._left -= len(data)
        if data and not self._wrong:
            self._events(self._sse.feed(data))

    def _take_head(self, data: bytes) -> bytes:
        self._head_bytes += data
        while True:
            block, found, rest = self._head_bytes.partition(HEAD_END)
            if not found:
                if len(block) > MAX_HEAD_BYTES:
                    raise HeadError("a head without end")
                return b""
            head = parse_head(block)
            self._head_bytes = rest
            if head.interim:
                continue
            self._head = head
            self._head_bytes = b""
            self._chunks = ChunkDecoder() if head.chunked else None
            self._left = head.length
            # The body of a refusal, a page or a packed body is not read as a stream.
            self._wrong = head.status != 200 or head.encoding not in _PLAIN
            self._wrong = self._wrong or head.content_type != _EVENT_STREAM
            return rest

    def _events(self, events: list[Event]) -> None:
        state, stamp = self._state, self._stamp
        for event in events:
            rise, text = state.take(event.data, event.name)
            if rise:
                self._by_rise.add(stamp, rise)
            if text:
                self._by_text.add(stamp, 1)

    # -- the verdict -------------------------------------------------------------------------------

    def finish(self, kind: int, stamp: int, body: bytes) -> Parsed:
        """The request has ended with this spool record."""
        self._parse_waiting()
        if self._head is not None and not self._wrong and self._whole(kind):
            self._events(self._sse.flush())
        arrived, source, total = self._tokens()
        outcome, reason = self._verdict(kind, body, arrived, total)
        timed = source != "none" and bool(arrived.stamps)
        exact = source in {"continuous_usage", "events"}
        return Parsed(
            outcome=outcome,
            reason=reason,
            status=self._head.status if self._head else None,
            first_ns=arrived.stamps[0] if timed else None,
            last_ns=arrived.stamps[-1] if timed else None,
            end_ns=self._stamp if kind == spool.ENDED and self._stamp else stamp,
            prompt_tokens=self._state.prompt_tokens,
            output_tokens=total,
            source=source,
            gaps=arrived.gaps() if exact else None,
            arrived=arrived,
            kernel=self._kernel,
            events=self._state.events,
        )

    def _tokens(self) -> tuple[Arrived, str, int | None]:
        state = self._state
        if state.continuous and not state.bare_text:
            return self._by_rise, "continuous_usage", self._by_rise.total
        if state.output_tokens is not None:
            source = "events" if self._by_text.total == state.output_tokens else "usage"
            return self._by_text, source, state.output_tokens
        if not self._by_text.total:
            return self._by_text, "none", 0 if self._complete() else None
        if self._by_text.total == self._asked:
            return self._by_text, "events", self._by_text.total
        if self._count_tokens is not None:
            return self._by_text, "tokenizer", self._count_tokens("".join(state.text))
        return self._by_text, "text", None

    def _miscounted(self) -> bool:
        """Tokens came in usage that no choice came with."""
        state = self._state
        return state.continuous and not state.bare_text and self._by_rise.total != state.output_tokens

    def _complete(self) -> bool:
        return self._state.done and self._state.finish is not None

    def _whole(self, kind: int) -> bool:
        """Whether the body came to its end as HTTP has it."""
        if self._chunks is not None:
            return self._chunks.complete
        return kind == spool.END_OF_FILE if self._left is None else self._left == 0

    def _verdict(
        self, kind: int, body: bytes, arrived: Arrived, total: int | None
    ) -> tuple[RequestOutcome, str | None]:
        if kind == spool.NOT_SENT:
            return "not_sent", body.decode()
        refusal = self._refusal()
        if refusal is not None:
            return "failed", refusal
        if not self._complete() or self._open_ended(kind):
            broken = self._transport(kind, body)
            if broken is not None:
                return broken
        wrong = self._content(total, arrived)
        return ("completed", None) if wrong is None else ("failed", wrong)

    def _refusal(self) -> str | None:
        """What makes it a failure however it ended."""
        head, state = self._head, self._state
        if self._framing_error is not None or head is None:
            return self._framing_error
        return _first(
            (head.status != 200, f"Http{head.status}"),
            (head.encoding not in _PLAIN, "UnexpectedEncoding"),
            (head.content_type != _EVENT_STREAM, "NotEventStream"),
            (self._extra, "MalformedHttp"),
            (state.error is not None, "StreamError"),
            (state.finish is not None and state.finish not in GOOD_FINISHES, "Aborted"),
        )

    def _open_ended(self, kind: int) -> bool:
        """A body that ends with its connection, and the connection did not end properly."""
        return kind == spool.BROKEN and self._chunks is None and self._left is None

    def _transport(self, kind: int, body: bytes) -> tuple[RequestOutcome, str] | None:
        """How the exchange ended before the stream did; None: properly."""
        if kind == spool.CLOSED:
            return "incomplete", body.decode()
        if kind == spool.BROKEN:
            code, stage = spool.BROKEN_BODY.unpack(body)
            if stage == spool.STAGE_CONNECT:
                return "failed", _CONNECT_REASONS.get(code, "ConnectFailed")
            return "failed", _BREAK_REASONS.get(code, "Reset")
        wrong = _first((self._head is None, "ClosedBeforeAnswer"), (not self._whole(kind), "Truncated"))
        return ("failed", wrong) if wrong is not None else None

    def _content(self, total: int | None, arrived: Arrived) -> str | None:
        """Why a stream that ended properly is no success."""
        state = self._state
        return _first(
            (state.malformed or bool(self._sse.junk), "MalformedEvent"),
            (not state.events and not state.done, "EmptyResponse"),
            (state.finish is None, "NoFinishReason"),
            (not state.done, "NoDone"),
            (state.inconsistent or self._miscounted(), "UsageMismatch"),
            (total is None, "LengthUnknown"),
            (total is not None and total < self._asked, "ShortOutput"),
            (total is not None and total > self._asked, "LongOutput"),
            (not arrived.stamps, "NoTokenTimes"),
        )


def _first(*checks: tuple[bool, str]) -> str | None:
    """The reason of the first check that objects."""
    return next((reason for wrong, reason in checks if wrong), None)
