"""The API on top of a queue in front of `generate()`."""

import hashlib
from collections.abc import Callable
from typing import Any

from goodput.engines.api.engine import Sink
from goodput.engines.api.metrics import RequestCollector, new_registry
from goodput.engines.api.protocol import Generation
from goodput.engines.api.server import ApiServer
from goodput.engines.api.stats import RequestStats
from goodput.engines.api.utility import Served
from goodput.engines.transformers.info import server_info
from goodput.engines.transformers.model import Model, ModelFacts
from goodput.engines.transformers.queue import SequentialQueue
from goodput.engines.transformers.request import BaselineRequest
from goodput.engines.transformers.sampling import choose, refuse_unbuilt
from goodput.engines.transformers.texts import OutputTexts


class BaselineServer(ApiServer[BaselineRequest]):
    """Build it inside the event loop that will run it. There is no prefix cache, and no route to reset one.

    Args:
        model: loaded.
        name: what it was loaded from.
        served_name: in requests and metrics.
        revision: that was asked for.
        api_keys: tokens that `/v1` asks for; empty for none.
        on_failure: see `SequentialQueue`.
    """

    def __init__(
        self,
        model: Model,
        *,
        name: str,
        served_name: str,
        on_failure: Callable[[], None],
        revision: str | None = None,
        api_keys: tuple[str, ...] = (),
    ) -> None:
        self._model = model
        self._name, self._revision = name, revision
        self.stats = RequestStats(model.facts.max_model_len)
        self.queue = SequentialQueue(model, self.stats, on_failure)
        registry = new_registry(RequestCollector(self.stats, model_name=served_name))
        super().__init__(_served(model.facts, name, served_name), model.tokenizer, registry, api_keys)

    def new_request(self, asked: Generation) -> BaselineRequest:
        """See `ApiServer`."""
        refuse_unbuilt(asked.others)
        return BaselineRequest(
            prompt=asked.prompt,
            max_tokens=asked.max_tokens,
            min_tokens=asked.min_tokens,
            stop_ids=frozenset() if asked.ignore_eos else self._model.facts.eos_token_ids,
            choice=choose(asked.sampling, self._model.facts.defaults),
        )

    def submit(self, request: BaselineRequest, sink: Sink) -> None:
        """See `ApiServer`."""
        self.queue.submit(request, sink)

    def abort(self, request: BaselineRequest) -> None:
        """See `ApiServer`."""
        self.queue.abort(request)

    def texts(self, asked: Generation) -> OutputTexts:
        """See `ApiServer`."""
        return OutputTexts(self._model.text, asked.prompt)

    def server_info(self, *, as_text: bool) -> dict[str, Any]:
        """See `ApiServer`."""
        return server_info(self._model.facts, self._name, self._revision, as_text=as_text)

    @property
    def num_unfinished(self) -> int:
        """See `ApiServer`."""
        return self.queue.num_unfinished

    async def wait_idle(self) -> None:
        """See `ApiServer`."""
        await self.queue.wait_idle()

    def abort_all(self) -> None:
        """See `ApiServer`."""
        self.queue.abort_all()

    def close(self) -> None:
        """See `ApiServer`."""
        self.queue.close()


def _served(facts: ModelFacts, name: str, served_name: str) -> Served:
    return Served(
        name=served_name,
        model=name,
        owner="transformers",
        version={"version": facts.transformers, "engine": "transformers"},
        max_model_len=facts.max_model_len,
        fingerprint=f"transformers-{facts.transformers}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:8]}",
    )
