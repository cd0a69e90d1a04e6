"""The engine without waiting: on a clock that jumps from event to event.

`VirtualEngine` takes requests while its clock runs, as a server does; `simulate` and `serve` are given all arrivals.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from goodput.engines.api.metrics import exposition
from goodput.engines.simulated import info
from goodput.engines.simulated.config import EngineConfig
from goodput.engines.simulated.core import EngineCore
from goodput.engines.simulated.metrics import EngineCollector
from goodput.engines.simulated.offline import Arrival, Served, serve, simulate
from goodput.engines.simulated.profile import Profile
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.stats import EngineStats
from goodput.engines.simulated.tokens import ToyTokenizer

__all__ = ["Arrival", "Served", "VirtualEngine", "serve", "simulate"]


class VirtualEngine:
    """A started server in this process, behind no network.

    Attributes:
        now_ns: its clock. It moves in `advance` alone.

    Args:
        config: resolved engine config.
        profile: how long steps take.
        now_ns: when it is ready.
    """

    def __init__(self, config: EngineConfig, profile: Profile, now_ns: int = 0) -> None:
        self.now_ns = now_ns
        self._config, self._profile = config, profile
        self._core, self._stats = EngineCore(config, profile), EngineStats(config.scheduler.max_model_len)
        self._tokenizer = ToyTokenizer(config.vocab_size)
        self._registry = CollectorRegistry()
        cache = info.cache_info(config)
        self._registry.register(EngineCollector(self._stats, model_name=config.served_model_name, cache_info=cache))
        self._live: dict[int, SimRequest] = {}
        self._pending: list[SimRequest] = []
        self._next_uid = 0
        self._end_ns = 0

    def submit(self, prompt_tokens: int, output_tokens: int, ids: Sequence[int] | None = None) -> int | None:
        """A request that arrives now; it is first looked at when the next step begins.

        Returns its number; None where the prompt does not fit the model length. The output ends there.

        Args:
            prompt_tokens: at least 1.
            output_tokens: at least 1; end-of-text tokens are ignored.
            ids: of the prompt, where it may share its beginning with others.
        """
        room = self._config.scheduler.max_model_len - prompt_tokens
        if room < 1:
            return None
        uid, limit = self._next_uid, min(output_tokens, room)
        self._next_uid += 1
        request = SimRequest(
            uid=uid,
            num_prompt_tokens=prompt_tokens,
            target_output_tokens=limit,
            max_tokens=limit,
            arrival_ns=self.now_ns,
            prompt_token_ids=ids,
        )
        self._live[uid] = request
        self._pending.append(request)
        return uid

    def abort(self, uid: int) -> None:
        """The client of an unfinished request is gone; the running step still computes it."""
        request = self._live.pop(uid)
        if request in self._pending:
            self._pending.remove(request)
            request.finish_reason = "abort"
        else:
            self._core.abort(request)
        if request.finish_reason is not None:
            self._stats.observe_abort()
            self._stats.observe_state(self._core.scheduler)

    def advance(self, until_ns: int) -> Sequence[SimRequest]:
        """Move the clock to the end of the next step, or to ``until_ns`` where none ends before.

        Returns the requests that got a token now; ended ones have a reason.

        Raises:
            RuntimeError: requests wait and nothing can run.
        """
        core = self._core
        if core.plan is None:
            self._begin()
        if core.plan is None or self._end_ns > until_ns:
            self.now_ns = until_ns
            return ()
        self.now_ns = self._end_ns
        result = core.end_step()
        self._stats.observe_step(result, core.scheduler)
        for request in result.yielding:
            if request.finish_reason is not None:
                del self._live[request.uid]
        return result.yielding

    def _begin(self) -> None:
        core = self._core
        for request in self._pending:
            core.add(request)
        self._pending.clear()
        if not core.has_work:
            return
        end_ns = core.begin_step(self.now_ns)
        if end_ns is None:
            raise RuntimeError("the scheduler is stuck: requests wait and nothing can run")
        self._end_ns = end_ns

    def reset_prefix_cache(self) -> bool:
        """Whether it was: not while a step runs or requests hold blocks."""
        return self._core.plan is None and self._core.scheduler.reset_prefix_cache()

    def tokenize(self, *, prompt: str | None = None, messages: Sequence[Mapping[str, str]] | None = None) -> list[int]:
        """As ``/tokenize``: a text without special tokens, or messages with the chat template around them."""
        if messages is None:
            return self._tokenizer.encode(prompt or "")
        return self._tokenizer.encode_chat([(message["role"], message["content"]) for message in messages])

    def metrics(self) -> str:
        """As ``/metrics``, without the process's own."""
        return exposition(self._registry).decode()

    def sample(self) -> dict[str, Any]:
        """The same numbers without their text: gauges, counters, and requests ended by reason."""
        stats = self._stats
        return {
            "running": stats.running,
            "waiting": stats.waiting,
            "kv_usage": stats.kv_usage,
            "preemptions": stats.preemptions,
            "prompt_tokens": stats.prompt_tokens,
            "generation_tokens": stats.generation_tokens,
            "prefix_queries": stats.prefix_queries,
            "prefix_hits": stats.prefix_hits,
            "finished": dict(stats.finished),
            "kv_blocks": self._config.cache.num_gpu_blocks,
            "block_size": self._config.cache.block_size,
        }

    @property
    def version(self) -> str:
        """As ``/version``."""
        return info.VERSION

    def info(self) -> dict[str, Any]:
        """As ``/server_info``."""
        return info.server_info(self._config, self._profile, as_text=False)
