"""The API on top of the simulated engine."""

import logging
from typing import Any

from aiohttp import web

from goodput.engines.api.engine import Sink
from goodput.engines.api.guard import json_answer
from goodput.engines.api.metrics import new_registry
from goodput.engines.api.protocol import Generation
from goodput.engines.api.server import ApiServer
from goodput.engines.api.utility import Served
from goodput.engines.simulated import info
from goodput.engines.simulated.config import EngineConfig
from goodput.engines.simulated.core import EngineCore
from goodput.engines.simulated.loop import EngineLoop
from goodput.engines.simulated.metrics import EngineCollector
from goodput.engines.simulated.profile import Profile
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.stats import EngineStats
from goodput.engines.simulated.texts import TokenTexts
from goodput.engines.simulated.tokens import ToyTokenizer

_log = logging.getLogger(__name__)


class SimulatedServer(ApiServer[SimRequest]):
    """The engine and its HTTP handlers. Build it inside the event loop that will run it.

    Args:
        config: resolved engine config.
        profile: how long steps take.
        api_keys: tokens that `/v1` asks for; empty for none.
    """

    def __init__(self, config: EngineConfig, profile: Profile, api_keys: tuple[str, ...] = ()) -> None:
        self._config = config
        self._profile = profile
        self._next_uid = 0
        self.stats = EngineStats(config.scheduler.max_model_len)
        self.loop = EngineLoop(EngineCore(config, profile), self.stats)
        tokenizer = ToyTokenizer(config.vocab_size)
        self._texts = TokenTexts(tokenizer)
        collector = EngineCollector(self.stats, model_name=config.served_model_name, cache_info=info.cache_info(config))
        super().__init__(_served(config), tokenizer, new_registry(collector), api_keys)

    def routes(self) -> list[web.RouteDef]:
        """See `ApiServer`; and what vLLM has for its caches."""
        return [
            *super().routes(),
            web.post("/reset_prefix_cache", self._reset_prefix_cache),
            web.post("/reset_mm_cache", self._empty),
            web.post("/reset_encoder_cache", self._empty),
        ]

    def new_request(self, asked: Generation) -> SimRequest:
        """See `ApiServer`. Of sampling only a temperature of 0 counts: equal prompts give equal tokens then."""
        uid = self._next_uid
        self._next_uid += 1
        length, stops = self.loop.core.target_output_tokens(
            uid, limit=asked.max_tokens, min_tokens=asked.min_tokens, ignore_eos=asked.ignore_eos
        )
        return SimRequest(
            uid=uid,
            num_prompt_tokens=len(asked.prompt),
            target_output_tokens=length,
            max_tokens=asked.max_tokens,
            stops_early=stops,
            prompt_token_ids=asked.prompt,
            greedy=asked.sampling.temperature == 0,
        )

    def submit(self, request: SimRequest, sink: Sink) -> None:
        """See `ApiServer`."""
        self.loop.submit(request, sink)

    def abort(self, request: SimRequest) -> None:
        """See `ApiServer`."""
        self.loop.abort(request)

    def texts(self, asked: Generation) -> TokenTexts:  # noqa: ARG002  # they depend on nothing before them
        """See `ApiServer`."""
        return self._texts

    def server_info(self, *, as_text: bool) -> dict[str, Any]:
        """See `ApiServer`."""
        return info.server_info(self._config, self._profile, as_text=as_text)

    @property
    def num_unfinished(self) -> int:
        """See `ApiServer`."""
        return self.loop.num_unfinished

    async def wait_idle(self) -> None:
        """See `ApiServer`."""
        await self.loop.wait_idle()

    def abort_all(self) -> None:
        """See `ApiServer`."""
        self.loop.abort_all()

    def close(self) -> None:
        """See `ApiServer`."""
        self.loop.stop()

    async def _empty(self, _request: web.Request) -> web.Response:
        return web.Response()

    async def _reset_prefix_cache(self, _request: web.Request) -> web.Response:
        success = self.loop.reset_prefix_cache()
        if not success:
            _log.warning("Failed to reset prefix cache because some blocks are not freed yet")
        return json_answer({"success": success})


def _served(config: EngineConfig) -> Served:
    return Served(
        name=config.served_model_name,
        model=config.model,
        owner="goodput-simulated",
        version={"version": info.VERSION, "synthetic": True},
        max_model_len=config.scheduler.max_model_len,
        fingerprint=info.fingerprint(config),
    )
