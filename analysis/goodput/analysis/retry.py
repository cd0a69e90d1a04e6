"""Holding on while the store refuses."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from goodput.analysis.store import StoreError

T = TypeVar("T")
HOLD_SECONDS = 3600.0  # DESIGN: analysis retries for one hour
FIRST_PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 60.0
_log = logging.getLogger(__name__)


def while_store_refuses(
    work: Callable[[], T],
    *,
    hold_seconds: float = HOLD_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """``work()``, repeated after a `StoreError` with doubling pauses until ``hold_seconds`` have passed.

    ``work`` must bear being repeated. The last refusal is raised.
    """
    deadline = clock() + hold_seconds
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return work()
        except StoreError as error:
            left = deadline - clock()
            if left <= 0:
                raise
            _log.warning("the store refuses (%s); next try in %.0f s, %.0f s left", error, min(pause, left), left)
            sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
