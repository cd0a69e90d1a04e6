"""An empty prefix cache before each cell: asked for, and seen in the server's own counters.

A server may answer that it was reset though nothing was (vllm#12284, #28827), or while another tier still holds the
blocks (vllm#57727). So the same text is sent before and after the reset: if it is still in the cache, the counter of
hits says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from goodput.analysis.schema.server import PrefixReset
from goodput.runner.contract import TrialPlan
from goodput.runner.errors import CacheNotResetError, RequestRefusedError, ServerGoneError
from goodput.runner.idle import GAP_SECONDS, wait_idle
from goodput.runner.server import Server
from goodput.runner.snapshot import Snapshot
from goodput.runner.stop import Stop

BLOCK_TOKENS: Final = 16  # vLLM's default, where the metrics do not say
SPARE_TOKENS: Final = 16  # of max_model_len, for special tokens and words of two tokens
UNCONFIRMED: Final = "the server does not confirm prefix cache resets; fresh prompts and the hit rate vouch for it"
UNSEEN: Final = "the server's counters do not show whether the prefix cache was reset; it says that it was"


@dataclass(frozen=True)
class Resetter:
    """Resets one server's prefix cache.

    Attributes:
        snapshot: the server's metrics now.
        deadline_seconds: how long it may refuse, and how long it may take to become idle.
    """

    server: Server
    plan: TrialPlan
    snapshot: Callable[[], Snapshot]
    stop: Stop
    deadline_seconds: float

    def reset(self) -> tuple[PrefixReset | None, tuple[str, ...]]:
        """Empty the cache. What is known of it then (None: nothing), and what the records should warn of.

        Raises:
            CacheNotResetError: it refuses until the deadline, or its counters say that it was not.
            ServerGoneError: it does not answer.
            NotIdleError: it is not idle after one request by the deadline.
        """
        if self.plan.config.flags.get("enable_prefix_caching") == "false":
            return None, ()
        now = self._idle()
        text = self._text(now)
        sent = text is not None and self._send(text)
        if not self._ask():
            return None, (UNCONFIRMED,)
        if not sent or text is None:
            return "said", (UNSEEN,) if now.known else ()  # without metrics there are other warnings
        before = self._idle()
        self.server.complete(self.plan.endpoint, text)
        after = self._idle()
        hits, queries = _rise(before.prefix_hits, after.prefix_hits), _rise(before.prefix_queries, after.prefix_queries)
        if hits:
            raise CacheNotResetError(f"after the reset {hits:g} of {queries or 0:g} tokens were still in the cache")
        self._ask()  # the text itself is to be in nobody's way
        return ("verified", ()) if hits is not None and queries else ("said", (UNSEEN,))

    def _idle(self) -> Snapshot:
        return wait_idle(self.snapshot, self.stop, deadline_seconds=self.deadline_seconds)

    def _ask(self) -> bool:
        """Ask until it agrees; a server that is busy refuses, or answers late. False: it does not say."""
        deadline = time.monotonic() + self.deadline_seconds
        while True:
            try:
                done = self.server.reset_prefix_cache()
            except ServerGoneError as error:
                if not error.slow:
                    raise
                done = False
            if done is not False:
                return done is True
            if time.monotonic() >= deadline:
                raise CacheNotResetError(f"the prefix cache was not reset within {self.deadline_seconds:g} s")
            self.stop.pause(GAP_SECONDS)

    def _text(self, now: Snapshot) -> str | None:
        """A text of two blocks and some; None where no such request fits, or nothing counts hits."""
        if now.prefix_queries is None or now.prefix_hits is None:
            return None
        words = 2 * (now.block_size or BLOCK_TOKENS) + SPARE_TOKENS
        length = self.plan.config.flags.get("max_model_len", "")
        if length.isdigit() and int(length) < 2 * words:
            return None
        return " ".join(["cache"] * words)

    def _send(self, text: str) -> bool:
        try:
            self.server.complete(self.plan.endpoint, text)
        except RequestRefusedError:
            return False
        return True


def _rise(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before
