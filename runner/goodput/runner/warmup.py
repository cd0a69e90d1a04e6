"""Warm-up: a closed loop with the sweep's lengths until latencies are steady, once per server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx

from goodput.runner.contract import TrialPlan
from goodput.runner.errors import RequestRefusedError, ServerGoneError
from goodput.runner.load.prompts import BodyWriter, PromptSource, TextSource
from goodput.runner.load.target import Target
from goodput.runner.load.tls import client_context
from goodput.runner.refusals import without_key
from goodput.runner.steady import BATCH, MIN_BATCHES, steady
from goodput.runner.stop import Stop

FIRST_SECONDS = 300.0  # beyond the cap, for a first request to end: a server is not warm before
TICK_SECONDS = 0.05
_FAILURE_PAUSE_SECONDS = 0.2
_FAILURES = 10  # without one success: the server does not serve this load at all
_REQUEST_SECONDS = 600.0


@dataclass(frozen=True)
class Warmup:
    """What warming took. ``steady``: false where the cap ended it; None where there was none."""

    seconds: float | None = None
    requests: int | None = None
    steady: bool | None = None


def cap_warnings(warmup: Warmup, plan: TrialPlan) -> tuple[str, ...]:
    """That the cap ended it, and what was missing. The first requests say nothing: they all come at once."""
    if warmup.steady is not False:
        return ()
    done, least = warmup.requests or 0, max(2 * plan.warmup_concurrency, MIN_BATCHES * BATCH)
    why = "latencies still moved" if done >= least else f"{least} are needed to tell"
    cap = f"warm-up was not steady after {plan.warmup_max_seconds:g} s"
    return (f"{cap}: {done} requests had completed, {why}; raise workload.warmup.max",)


@dataclass
class Series:
    """Latencies over the median of their shape, in order of completion, so that mixed lengths are one series."""

    shapes: int
    ttft: list[list[float]] = field(init=False)
    e2e: list[list[float]] = field(init=False)
    order: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ttft = [[] for _ in range(self.shapes)]
        self.e2e = [[] for _ in range(self.shapes)]

    def add(self, shape: int, ttft: float, e2e: float) -> None:
        """A request of that shape has ended; seconds."""
        self.order.append((shape, len(self.ttft[shape])))
        self.ttft[shape].append(ttft)
        self.e2e[shape].append(e2e)

    def steady(self, at_least: int) -> bool:
        """Whether so many have ended, and both latencies no longer move."""
        return len(self.order) >= at_least and all(steady(self._relative(kind)) for kind in (self.ttft, self.e2e))

    def _relative(self, kind: Sequence[Sequence[float]]) -> list[float]:
        middles = [sorted(values)[len(values) // 2] or 1.0 if values else 1.0 for values in kind]
        return [kind[shape][index] / middles[shape] for shape, index in self.order]


def warm_up(
    target: Target, plan: TrialPlan, prompts: PromptSource, shapes: Sequence[tuple[int, int]], stop: Stop
) -> Warmup:
    """Load the server with `warmup_concurrency` requests at a time until MSER says steady, or the cap.

    One at least has ended then. Prompt and output lengths take turns. The prompts must not be measured later.
    Requests that are open at the end are closed.

    Raises:
        RequestRefusedError: it refuses every request.
        ServerGoneError: it answers none.
        StoppedError: asked to stop.
    """
    if plan.warmup_max_seconds == 0 or not plan.loads:
        return Warmup()
    return asyncio.run(_Loop(target, plan, prompts, shapes, stop).run())


class _Loop:
    def __init__(
        self, target: Target, plan: TrialPlan, prompts: PromptSource, shapes: Sequence[tuple[int, int]], stop: Stop
    ) -> None:
        self._target = target
        self._plan = plan
        self._prompts = prompts
        self._stop = stop
        self._shapes = shapes
        self._series = Series(len(self._shapes))
        self._writer = BodyWriter(plan.endpoint, plan.served_model)
        self._path = target.path
        self._next = 0
        self._failures = 0
        self._last_failure: RequestRefusedError | ServerGoneError | None = None

    async def run(self) -> Warmup:
        concurrency = self._plan.warmup_concurrency
        limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        begun = time.monotonic()
        checked = 0
        async with httpx.AsyncClient(
            base_url=self._target.origin,
            headers=dict(self._target.headers),
            limits=limits,
            timeout=_REQUEST_SECONDS,
            trust_env=False,
            verify=client_context(self._target.ca_file) if self._target.tls else False,
        ) as client:
            workers = [asyncio.create_task(self._worker(client)) for _ in range(concurrency)]
            try:
                while True:
                    await asyncio.sleep(TICK_SECONDS)
                    self._stop.check()
                    self._check_failures()
                    done = len(self._series.order)
                    settled = done > checked and self._series.steady(2 * concurrency)
                    checked = done
                    seconds = time.monotonic() - begun
                    cap = self._plan.warmup_max_seconds + (0 if done else FIRST_SECONDS)
                    if settled or seconds >= cap:
                        return Warmup(seconds, done, settled)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _worker(self, client: httpx.AsyncClient) -> None:
        while True:
            index = self._next
            self._next += 1
            shape = index % len(self._shapes)
            try:
                ttft, e2e = await self._request(client, self._body(index, *self._shapes[shape]))
            except (RequestRefusedError, ServerGoneError) as error:
                self._failures += 1
                self._last_failure = error
                await asyncio.sleep(_FAILURE_PAUSE_SECONDS)
            else:
                self._series.add(shape, ttft, e2e)

    def _body(self, index: int, prompt_tokens: int, output_tokens: int) -> bytes:
        if self._plan.endpoint == "chat" and isinstance(self._prompts, TextSource):
            return self._writer.chat(self._prompts.messages(prompt_tokens, index), output_tokens)
        return self._writer.completion(self._prompts.ids(prompt_tokens, index), output_tokens)[0]

    async def _request(self, client: httpx.AsyncClient, body: bytes) -> tuple[float, float]:
        sent = time.monotonic()
        first = last = 0.0
        headers = {"Content-Type": "application/json"}
        try:
            async with client.stream("POST", self._path, content=body, headers=headers) as answer:
                if answer.status_code != 200:
                    text = (await answer.aread()).decode("utf-8", errors="replace")
                    text = without_key(text, self._target.headers)[:300]
                    raise RequestRefusedError(f"POST {self._path}: {answer.status_code} {text}")
                async for _ in answer.aiter_raw():
                    last = time.monotonic()
                    first = first or last
        except httpx.HTTPError as error:
            raise ServerGoneError(f"POST {self._path}: {type(error).__name__} {error}") from error
        return first - sent, last - sent

    def _check_failures(self) -> None:
        if self._last_failure is not None and self._failures >= _FAILURES and not self._series.order:
            raise self._last_failure
