"""Idle: nothing running, nothing waiting, and counters that no longer move."""

from __future__ import annotations

import time
from collections.abc import Callable

from goodput.runner.errors import NotIdleError, ServerGoneError
from goodput.runner.snapshot import Snapshot
from goodput.runner.stop import Stop

GAP_SECONDS = 0.2
DEADLINE_SECONDS = 60.0


def wait_idle(
    read: Callable[[], Snapshot],
    stop: Stop,
    *,
    told: bool = False,
    gap_seconds: float = GAP_SECONDS,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> Snapshot:
    """Wait for two equal scrapes with running 0 and waiting 0; the second one is the snapshot.

    Counters of the last requests come with the engine's outputs, so one scrape with zeros is not enough. A
    server that does not say how many requests it has is idle when our own are closed: at once, unless it
    has ``told`` before; then one unreadable page is not the end.

    Raises:
        NotIdleError: not by the deadline.
        ServerGoneError: it does not answer, or with metrics no more; slow answers are waited for until the deadline.
        StoppedError: asked to stop.
    """
    deadline = time.monotonic() + deadline_seconds
    before: Snapshot | None = None
    while True:
        try:
            now = read()
        except ServerGoneError as error:
            if not error.slow or time.monotonic() >= deadline:
                raise
            before = None
            stop.pause(gap_seconds)
            continue
        if not now.known and told:
            if time.monotonic() >= deadline:
                raise ServerGoneError(now.problem or "it does not say any more how many requests it has")
            before = None
            stop.pause(gap_seconds)
            continue
        if not now.known:
            return now
        quiet = now.running == 0 and now.waiting == 0
        if quiet and before is not None and now.same(before):
            return now
        if time.monotonic() >= deadline:
            raise NotIdleError(
                f"running {now.running:g}, waiting {now.waiting:g} after {deadline_seconds:g} s without new requests"
            )
        before = now if quiet else None
        stop.pause(gap_seconds)
