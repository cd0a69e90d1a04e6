"""The endpoints beside generation: health, version, models, metrics, tokens."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from goodput.engines.api import bodies, protocol
from goodput.engines.api.engine import Tokenizer
from goodput.engines.api.guard import json_answer
from goodput.engines.api.metrics import exposition
from goodput.engines.errors import RequestError


@dataclass(frozen=True)
class Served:
    """What is served.

    Attributes:
        name: in requests and metrics.
        model: what it was loaded from.
        owner: `owned_by` in `/v1/models`.
        version: answer of `/version`.
        fingerprint: `system_fingerprint` of answers.
    """

    name: str
    model: str
    owner: str
    version: Mapping[str, Any]
    max_model_len: int
    fingerprint: str


class UtilityRoutes:
    """Handlers that need no running engine.

    Args:
        served: the model.
        tokenizer: of the model.
        registry: behind `/metrics`.
    """

    def __init__(self, served: Served, tokenizer: Tokenizer, registry: CollectorRegistry) -> None:
        self._served = served
        self._tokenizer = tokenizer
        self._registry = registry
        self._created = int(time.time())

    def routes(self) -> list[web.RouteDef]:
        """Their routes."""
        return [
            web.get("/health", self._health),
            web.get("/ping", self._health),
            web.post("/ping", self._health),
            web.get("/load", self._load),
            web.get("/version", self._version),
            web.get("/metrics", self._metrics),
            web.get("/v1/models", self._models),
            web.post("/tokenize", self._tokenize),
            web.post("/detokenize", self._detokenize),
        ]

    async def _health(self, _request: web.Request) -> web.Response:
        return web.Response()

    async def _load(self, _request: web.Request) -> web.Response:
        return json_answer({"server_load": 0})

    async def _version(self, _request: web.Request) -> web.Response:
        return json_answer(dict(self._served.version))

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=exposition(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _models(self, _request: web.Request) -> web.Response:
        served = self._served
        permission = {
            "id": f"modelperm-{hashlib.sha256(served.model.encode()).hexdigest()[:16]}",
            "object": "model_permission",
            "created": self._created,
            "allow_create_engine": False,
            "allow_sampling": True,
            "allow_logprobs": True,
            "allow_search_indices": False,
            "allow_view": True,
            "allow_fine_tuning": False,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        model = {
            "id": served.name,
            "object": "model",
            "created": self._created,
            "owned_by": served.owner,
            "root": served.model,
            "parent": None,
            "max_model_len": served.max_model_len,
            "permission": [permission],
        }
        return json_answer({"object": "list", "data": [model]})

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = bodies.parse(bodies.TokenizeBody, await request.read())
        protocol.check_model(body.model, self._served.name)
        if body.messages is not None:
            messages = [(message.role, message.text) for message in body.messages]
            ids = self._tokenizer.encode_chat(messages, generation_prompt=body.add_generation_prompt)
        elif body.prompt is not None:
            special = body.add_special_tokens is not False
            ids = self._tokenizer.encode(body.prompt, add_special_tokens=special)
        else:
            raise RequestError("Either prompt or messages must be provided.", kind="Bad Request", param="body")
        words = [self._tokenizer.decode([token]) for token in ids] if body.return_token_strs else None
        document = {"count": len(ids), "max_model_len": self._served.max_model_len, "tokens": ids}
        return json_answer({**document, "token_strs": words})

    async def _detokenize(self, request: web.Request) -> web.Response:
        body = bodies.parse(bodies.DetokenizeBody, await request.read())
        protocol.check_model(body.model, self._served.name)
        protocol.check_vocabulary(body.tokens, self._tokenizer.vocab_size)
        return json_answer({"prompt": self._tokenizer.decode(body.tokens)})
