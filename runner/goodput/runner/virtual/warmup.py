"""Warm-up in virtual time: the same closed loop, judged by the same rule at the same times."""

from __future__ import annotations

from collections.abc import Sequence

from goodput.runner.contract import TrialPlan
from goodput.runner.virtual.engine import NANOSECONDS, Engine, Served
from goodput.runner.warmup import FIRST_SECONDS, TICK_SECONDS, Series, Warmup

TICK_NS = round(TICK_SECONDS * NANOSECONDS)


def warm_up(engine: Engine, plan: TrialPlan, shapes: Sequence[tuple[int, int]]) -> Warmup:
    """See `goodput.runner.warmup.warm_up`. Prompt and output lengths take turns."""
    if plan.warmup_max_seconds == 0 or not plan.loads:
        return Warmup()
    return _Loop(engine, plan, shapes).run()


class _Loop:
    def __init__(self, engine: Engine, plan: TrialPlan, shapes: Sequence[tuple[int, int]]) -> None:
        self._engine, self._plan, self._shapes = engine, plan, shapes
        self._series = Series(len(shapes))
        self._open: dict[int, tuple[int, int, int]] = {}  # shape, sent and first token
        self._sent = 0

    def run(self) -> Warmup:
        engine, concurrency = self._engine, self._plan.warmup_concurrency
        begun = tick = engine.now_ns
        checked = 0
        for _ in range(concurrency):
            self._send()
        while True:
            tick += TICK_NS
            while engine.now_ns < tick:
                for served in engine.advance(tick):
                    self._token(served)
            done = len(self._series.order)
            settled = done > checked and self._series.steady(2 * concurrency)
            checked = done
            seconds = (engine.now_ns - begun) / NANOSECONDS
            if settled or seconds >= self._plan.warmup_max_seconds + (0 if done else FIRST_SECONDS):
                for uid in self._open:
                    engine.abort(uid)
                return Warmup(seconds, done, settled)

    def _send(self) -> None:
        shape = self._sent % len(self._shapes)
        self._sent += 1
        uid = self._engine.submit(*self._shapes[shape])
        if uid is not None:
            self._open[uid] = (shape, self._engine.now_ns, 0)

    def _token(self, served: Served) -> None:
        now = self._engine.now_ns
        shape, sent, first = self._open[served.uid]
        first = first or now
        self._open[served.uid] = (shape, sent, first)
        if served.finish_reason is not None:
            del self._open[served.uid]
            self._series.add(shape, (first - sent) / NANOSECONDS, (now - sent) / NANOSECONDS)
            self._send()
