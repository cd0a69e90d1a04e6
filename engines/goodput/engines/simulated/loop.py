"""The engine in real time: steps begin and end on an absolute clock.

A step that follows another begins when that one ended by plan, not when the process got round to it, so
delays of the process do not add up. A request that arrives during a step is first looked at when the
next one begins, as in an engine that is busy.
"""

import asyncio
import logging
import time
from collections import Counter, deque

from goodput.engines.api.engine import Sink
from goodput.engines.simulated.core import EngineCore
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.stats import EngineStats

_log = logging.getLogger(__name__)
_NS = 1_000_000_000
#: A step may end this much early, so that a timer of whole milliseconds need not fire twice.
_EARLY_NS = 400_000
#: Timers of the loop count whole milliseconds: the last one of a long step is waited for by looking at the clock.
_WATCHED_NS = 1_000_000
_LONG_STEP_NS = 10_000_000
_LATE_UNIT_NS = 100_000
_LATE_WARNING_NS = 50_000_000
_WARNING_INTERVAL_NS = 10 * _NS


class Lateness:
    """Counts of steps by how late they were, in tenths of a millisecond (a step that is early is 0 late)."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, late_ns: int) -> None:
        """Counts a step."""
        self._counts[max(0, late_ns) // _LATE_UNIT_NS] += 1

    def __str__(self) -> str:
        return (
            f"{self._counts.total()}, handled after their planned end by p50 {self._quantile_ms(0.5):.1f} ms, "
            f"p99 {self._quantile_ms(0.99):.1f} ms, at most {self._quantile_ms(1.0):.1f} ms"
        )

    def _quantile_ms(self, share: float) -> float:
        """Upper edge of the class that holds it; 0 where there was no step."""
        left = share * self._counts.total()
        for unit, count in sorted(self._counts.items()):
            left -= count
            if left <= 0:
                return (unit + 1) * _LATE_UNIT_NS / 1e6
        return 0.0


class EngineLoop:
    """Drives a core with the event loop's timers.

    Attributes:
        lateness: how late steps were handled after their planned end.
    """

    def __init__(self, core: EngineCore, stats: EngineStats) -> None:
        self.core = core
        self.stats = stats
        self.lateness = Lateness()
        self._pending: deque[SimRequest] = deque()
        self._sinks: dict[SimRequest, Sink] = {}
        self._end_ns = 0
        self._watched_ns = 0
        self._early_ns = 0
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._last_warning_ns = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def num_unfinished(self) -> int:
        """Requests submitted and not ended."""
        return len(self._sinks)

    def submit(self, request: SimRequest, sink: Sink) -> None:
        """Takes a request; its `arrival_ns` is set here."""
        request.arrival_ns = time.monotonic_ns()
        self._pending.append(request)
        self._sinks[request] = sink
        self._idle.clear()
        if self._timer is None:
            self._begin(request.arrival_ns)

    def abort(self, request: SimRequest) -> None:
        """Ends a request whose client is gone; nothing happens if it has ended."""
        if self._sinks.pop(request, None) is None:
            return
        if request in self._pending:
            self._pending.remove(request)
            request.finish_reason = "abort"
        else:
            self.core.abort(request)
        if request.finish_reason is not None:
            self.stats.observe_abort()
            self.stats.observe_state(self.core.scheduler)
        self._note_idle()

    def abort_all(self) -> None:
        """Gives all requests up, telling their sinks."""
        for request, sink in list(self._sinks.items()):
            self.abort(request)
            sink.aborted()

    async def wait_idle(self) -> None:
        """Returns when no request is unfinished."""
        await self._idle.wait()

    def reset_prefix_cache(self) -> bool:
        """See `Scheduler.reset_prefix_cache`; False while a step runs or requests hold blocks."""
        return self.core.plan is None and self.core.scheduler.reset_prefix_cache()

    def stop(self) -> None:
        """Takes no more steps."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self, begin_ns: int) -> None:
        while self._pending and self._pending[0].arrival_ns <= begin_ns:
            self.core.add(self._pending.popleft())
        end_ns = self.core.begin_step(begin_ns)
        if end_ns is None:
            self._timer = None
            if self._pending:
                self._begin(self._pending[0].arrival_ns)
            return
        self._end_ns = end_ns
        is_long = end_ns - begin_ns >= _LONG_STEP_NS
        self._watched_ns, self._early_ns = (_WATCHED_NS, 0) if is_long else (0, _EARLY_NS)
        self._arm()

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        wait_ns = self._end_ns - time.monotonic_ns() - self._watched_ns
        self._timer = loop.call_soon(self._end) if wait_ns <= 0 else loop.call_later(wait_ns / _NS, self._end)

    def _end(self) -> None:
        late_ns = time.monotonic_ns() - self._end_ns
        if late_ns < -self._early_ns:
            self._arm()
            return
        self._note_late(late_ns)
        result = self.core.end_step()
        self.stats.observe_step(result, self.core.scheduler)
        for request in result.yielding:
            sink = self._sinks.get(request)
            if sink is not None:
                sink.token(request)
                if request.finish_reason is not None:
                    del self._sinks[request]
        self._note_idle()
        self._begin(self._end_ns)

    def _note_idle(self) -> None:
        if not self._sinks:
            self._idle.set()

    def _note_late(self, late_ns: int) -> None:
        self.lateness.add(late_ns)
        if late_ns > _LATE_WARNING_NS and self._end_ns > self._last_warning_ns + _WARNING_INTERVAL_NS:
            self._last_warning_ns = self._end_ns
            _log.warning("The step clock is %.0f ms late: this machine is too slow for the load.", late_ns / 1e6)
