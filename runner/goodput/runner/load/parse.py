"""From the reads of one response to one record, whatever their boundaries were (pure)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from goodput.analysis.schema.base import RequestOutcome
from goodput.runner.load import spool
from goodput.runner.load.events import StreamState
from goodput.runner.load.framing import Framing
from goodput.runner.load.sse import Event
from goodput.runner.load.template import Common, CommonReads
from goodput.runner.load.tokens import Arrived, Gaps
from goodput.runner.load.verdict import Counted, verdict

CountTokens = Callable[[str], int]
WAITING = 64  # reads of one response that are parsed at once, at most: some 20 kB


@dataclass(frozen=True, slots=True)
class Parsed:
    """What became of one request. Stamps: CLOCK_MONOTONIC ns; None: did not happen or is not known.

    Attributes:
        source: how tokens were counted: continuous_usage; events (one token each); usage, tokenizer (total only);
            text (there was some, its length is not known); none.
        end_ns: when the response ended, or was given up.
        answer_ns: the first token that is no reasoning; None where there was no reasoning, or nothing behind it.
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
    answer_ns: int | None = None

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
        "_answer_ns", "_asked", "_by_rise", "_by_text", "_common", "_count_tokens", "_framing", "_kernel", "_stamp",
        "_state", "_waiting", "_waiting_kernel", "_waiting_stamps",
    )  # fmt: skip

    def __init__(self, output_tokens: int, count_tokens: CountTokens | None = None) -> None:
        self._asked = output_tokens
        self._count_tokens = count_tokens
        self.restart()

    def restart(self) -> None:
        """Forget everything: the request was sent again on a fresh connection."""
        self._framing = Framing()
        self._state = StreamState()
        self._by_rise, self._by_text = Arrived(), Arrived()
        self._stamp = 0
        self._answer_ns: int | None = None
        self._kernel = True
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
            if self._answer_ns is None and self._state.answered:
                self._answer_ns = stamps[texts.index(1)]
            self._kernel = self._kernel and (kernel or not (any(rises) or any(texts)))
        return count

    def _read(self, data: bytes, stamp: int, *, kernel: bool) -> None:
        self._stamp = stamp
        self._by_rise.next_read()
        self._by_text.next_read()
        tokens = self._by_rise.total + self._by_text.total
        self._events(self._framing.feed(data))
        if not kernel and self._by_rise.total + self._by_text.total > tokens:
            self._kernel = False
        self._common = self._state.common if self._framing.between else None

    def _events(self, events: list[Event]) -> None:
        state, stamp = self._state, self._stamp
        for event in events:
            rise, text = state.take(event.data, event.name)
            if rise:
                self._by_rise.add(stamp, rise)
            if text:
                self._by_text.add(stamp, 1)
                if self._answer_ns is None and state.answered:
                    self._answer_ns = stamp

    def finish(self, kind: int, stamp: int, body: bytes) -> Parsed:
        """The request has ended with this spool record."""
        self._parse_waiting()
        self._events(self._framing.flush(kind))
        arrived, source, total = self._tokens()
        counted = Counted(self._asked, total, bool(arrived.stamps), self._miscounted())
        outcome, reason = verdict(kind, body, self._framing, self._state, counted)
        head = self._framing.head
        timed = source != "none" and bool(arrived.stamps)
        exact = source in {"continuous_usage", "events"}
        return Parsed(
            outcome=outcome,
            reason=reason,
            status=head.status if head else None,
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
            answer_ns=self._answer_ns if timed and self._state.reasoned else None,
        )

    def _tokens(self) -> tuple[Arrived, str, int | None]:
        state = self._state
        if state.continuous and not state.bare_text:
            return self._by_rise, "continuous_usage", self._by_rise.total
        if state.output_tokens is not None:
            source = "events" if self._by_text.total == state.output_tokens else "usage"
            return self._by_text, source, state.output_tokens
        if not self._by_text.total:
            return self._by_text, "none", 0 if self._state.complete else None
        if self._by_text.total == self._asked:
            return self._by_text, "events", self._by_text.total
        if self._count_tokens is not None:
            return self._by_text, "tokenizer", self._count_tokens("".join(state.text))
        return self._by_text, "text", None

    def _miscounted(self) -> bool:
        """Tokens came in usage that no choice came with."""
        state = self._state
        return state.continuous and not state.bare_text and self._by_rise.total != state.output_tokens
