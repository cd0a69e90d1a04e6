"""One request at a time, in order of arrival: the queue, and the thread that generates."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from goodput.engines.api.engine import Sink
from goodput.engines.api.stats import RequestStats
from goodput.engines.transformers.model import Model
from goodput.engines.transformers.request import BaselineRequest

_log = logging.getLogger(__name__)


class SequentialQueue:
    """Build and use it inside the event loop; only `generate` runs outside, in one thread.

    Args:
        model: what generates.
        stats: counts what happens.
        on_failure: called when generating failed: nothing is served any more.
    """

    def __init__(self, model: Model, stats: RequestStats, on_failure: Callable[[], None]) -> None:
        self._model = model
        self._stats = stats
        self._on_failure = on_failure
        self._events = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="generate")
        self._waiting: deque[BaselineRequest] = deque()
        self._running: BaselineRequest | None = None
        self._sinks: dict[BaselineRequest, Sink] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self.failed = False

    @property
    def num_unfinished(self) -> int:
        """Requests that somebody waits for."""
        return len(self._sinks)

    async def wait_idle(self) -> None:
        """Returns when nothing waits and nothing is generated."""
        await self._idle.wait()

    def submit(self, request: BaselineRequest, sink: Sink) -> None:
        """Takes a request; its `arrival_ns` is set here."""
        request.arrival_ns = time.monotonic_ns()
        if self.failed:
            sink.aborted()
            return
        self._sinks[request] = sink
        self._waiting.append(request)
        self._idle.clear()
        self._next()

    def abort(self, request: BaselineRequest) -> None:
        """Ends a request whose client is gone; nothing happens if it has ended."""
        if self._sinks.pop(request, None) is None:
            return
        request.cancelled = True
        request.finish_reason = "abort"
        self._stats.observe_abort()
        if request in self._waiting:
            self._waiting.remove(request)
        self._show()

    def abort_all(self) -> None:
        """Gives all requests up, telling their sinks."""
        for request, sink in list(self._sinks.items()):
            self.abort(request)
            sink.aborted()

    def close(self) -> None:
        """Generates no more. What runs ends with its next token."""
        self._thread.shutdown(wait=True)

    def _next(self) -> None:
        if self._running is None and self._waiting:
            self._running = self._waiting.popleft()
            self._running.scheduled_ns = time.monotonic_ns()
            self._thread.submit(self._generate, self._running)
        self._show()

    def _show(self) -> None:
        self._stats.waiting = len(self._waiting)
        self._stats.running = 0 if self._running is None else 1
        if self._running is None and not self._waiting:
            self._idle.set()

    def _generate(self, request: BaselineRequest) -> None:
        """In the thread."""

        def on_token(token: int) -> None:
            self._events.call_soon_threadsafe(self._token, request, token, time.monotonic_ns())

        try:
            self._model.generate(
                request.prompt,
                max_tokens=request.max_tokens,
                min_tokens=request.min_tokens,
                stop_ids=request.stop_ids,
                choice=request.choice,
                on_token=on_token,
                cancelled=lambda: request.cancelled,
            )
        except Exception as error:  # noqa: BLE001  whatever the model raises ends the server, as it ends vLLM's
            _log.exception("generating failed, the server ends: %s", error)
            self._events.call_soon_threadsafe(self._fail, request)
        else:
            self._events.call_soon_threadsafe(self._ended, request)

    def _token(self, request: BaselineRequest, token: int, now_ns: int) -> None:
        sink = self._sinks.get(request)
        if sink is None:
            return
        previous_ns = request.last_token_ns
        request.take(token, now_ns)
        self._stats.generation_tokens += 1
        if previous_ns < 0:
            self._stats.observe_first_token(request, now_ns)
        else:
            self._stats.observe_gap(now_ns - previous_ns)
        if request.finish_reason is not None:
            del self._sinks[request]
            self._stats.observe_end(request)
        sink.token(request)

    def _ended(self, request: BaselineRequest) -> None:
        self._running = None
        sink = self._sinks.pop(request, None)
        if sink is not None:
            _log.error("generating ended after %d of %d tokens", request.num_output_tokens, request.max_tokens)
            self._stats.finished["error"] += 1
            sink.aborted()
        self._next()

    def _fail(self, request: BaselineRequest) -> None:
        self.failed = True
        self._running = None
        sink = self._sinks.pop(request, None)
        if sink is not None:
            self._stats.finished["error"] += 1
            sink.aborted()
        self.abort_all()
        self._show()
        self._on_failure()
