"""vLLM 0.32's OpenAI-compatible server on top of the simulated engine."""

import hashlib
import json
import logging
import secrets
import time
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from goodput.engines.errors import RequestError
from goodput.engines.simulated import info, protocol, sse
from goodput.engines.simulated.config import EngineConfig
from goodput.engines.simulated.core import EngineCore
from goodput.engines.simulated.http_metrics import HttpMetrics
from goodput.engines.simulated.loop import EngineLoop
from goodput.engines.simulated.metrics import EngineCollector, exposition, new_registry
from goodput.engines.simulated.profile import Profile
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.stats import EngineStats
from goodput.engines.simulated.stream import StreamSink, TokenTexts, WholeSink
from goodput.engines.simulated.tokens import ToyTokenizer

_log = logging.getLogger(__name__)
_MAX_BODY_BYTES = 64 << 20
_GUARDED = "/v1"


class SimulatedServer:
    """The engine and its HTTP handlers. Build it inside the event loop that will run it.

    Args:
        config: resolved engine config.
        profile: how long steps take.
        api_keys: tokens that `/v1` asks for; empty for none.
    """

    def __init__(self, config: EngineConfig, profile: Profile, api_keys: tuple[str, ...] = ()) -> None:
        self._config = config
        self._profile = profile
        self._key_hashes = [hashlib.sha256(key.encode()).digest() for key in api_keys]
        self._tokenizer = ToyTokenizer(config.vocab_size)
        self._texts = TokenTexts(self._tokenizer)
        self._max_model_len = config.scheduler.max_model_len
        self._created = int(time.time())
        self._fingerprint = info.fingerprint(config)
        self._next_uid = 0
        self.stats = EngineStats(self._max_model_len)
        self.loop = EngineLoop(EngineCore(config, profile), self.stats)
        collector = EngineCollector(self.stats, model_name=config.served_model_name, cache_info=info.cache_info(config))
        self._registry = new_registry(collector)
        self._http = HttpMetrics(self._registry)

    def application(self) -> web.Application:
        """The aiohttp application with all routes."""
        middlewares = [self._http.middleware, self._answer_errors]
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=middlewares)
        app.add_routes(
            [
                web.get("/health", self._empty),
                web.get("/ping", self._empty),
                web.post("/ping", self._empty),
                web.get("/load", self._load),
                web.get("/version", self._version),
                web.get("/metrics", self._metrics),
                web.get("/server_info", self._server_info),
                web.get("/v1/models", self._models),
                web.post("/v1/completions", self._completions),
                web.post("/v1/chat/completions", self._chat),
                web.post("/tokenize", self._tokenize),
                web.post("/detokenize", self._detokenize),
                web.post("/reset_prefix_cache", self._reset_prefix_cache),
                web.post("/reset_mm_cache", self._empty),
                web.post("/reset_encoder_cache", self._empty),
            ]
        )
        return app

    @web.middleware
    async def _answer_errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._key_hashes and request.path.startswith(_GUARDED) and not self._authorized(request):
            return _json({"error": "Unauthorized"}, status=401)
        try:
            return await handler(request)
        except RequestError as error:
            body = {"message": str(error), "type": error.kind, "param": error.param, "code": error.status}
            return _json({"error": body}, status=error.status)
        except web.HTTPClientError as error:
            body = {"message": error.reason, "type": error.reason, "param": None, "code": error.status}
            return _json({"error": body}, status=error.status)

    def _authorized(self, request: web.Request) -> bool:
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        digest = hashlib.sha256(key.encode()).digest()
        known = [secrets.compare_digest(digest, expected) for expected in self._key_hashes]
        return scheme.lower() == "bearer" and any(known)

    async def _empty(self, _request: web.Request) -> web.Response:
        return web.Response()

    async def _load(self, _request: web.Request) -> web.Response:
        return _json({"server_load": 0})

    async def _version(self, _request: web.Request) -> web.Response:
        return _json({"version": info.VERSION, "synthetic": True})

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=exposition(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _server_info(self, request: web.Request) -> web.Response:
        kind = request.query.get("config_format", "text")
        if kind not in ("text", "json"):
            raise RequestError("config_format must be 'text' or 'json'", kind="Bad Request", param="query")
        return _json(info.server_info(self._config, self._profile, as_text=kind == "text"))

    async def _models(self, _request: web.Request) -> web.Response:
        return _json(info.models(self._config, self._created))

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = protocol.parse(protocol.TokenizeBody, await request.read())
        protocol.check_model(body.model, self._config.served_model_name)
        if body.messages is not None:
            messages = [(message.role, message.text) for message in body.messages]
            ids = self._tokenizer.encode_chat(messages, generation_prompt=body.add_generation_prompt)
        elif body.prompt is not None:
            special = body.add_special_tokens is not False
            ids = self._tokenizer.encode(body.prompt, add_special_tokens=special)
        else:
            raise RequestError("Either prompt or messages must be provided.", kind="Bad Request", param="body")
        words = [self._tokenizer.decode([token]) for token in ids] if body.return_token_strs else None
        document = {"count": len(ids), "max_model_len": self._max_model_len, "tokens": ids}
        return _json({**document, "token_strs": words})

    async def _detokenize(self, request: web.Request) -> web.Response:
        body = protocol.parse(protocol.DetokenizeBody, await request.read())
        protocol.check_model(body.model, self._config.served_model_name)
        protocol.check_vocabulary(body.tokens, self._config.vocab_size)
        return _json({"prompt": self._tokenizer.decode(body.tokens)})

    async def _reset_prefix_cache(self, _request: web.Request) -> web.Response:
        success = self.loop.reset_prefix_cache()
        if not success:
            _log.warning("Failed to reset prefix cache because some blocks are not freed yet")
        return _json({"success": success})

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        body = protocol.parse(protocol.CompletionBody, await request.read())
        protocol.check_model(body.model, self._config.served_model_name)
        asked = protocol.check_completion(body, self._tokenizer, self._max_model_len)
        return await self._answer(request, asked, chat=False)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = protocol.parse(protocol.ChatBody, await request.read())
        protocol.check_model(body.model, self._config.served_model_name)
        asked = protocol.check_chat(body, self._tokenizer, self._max_model_len)
        return await self._answer(request, asked, chat=True)

    async def _answer(self, http: web.Request, asked: protocol.Generation, *, chat: bool) -> web.StreamResponse:
        head = self._head(http, chat=chat)
        request = self._new_request(asked)
        if asked.stream:
            return await self._stream(http, asked, request, head, chat=chat)
        sink = WholeSink()
        self.loop.submit(request, sink)
        try:
            completed = await sink.done
        finally:
            self.loop.abort(request)
        if not completed:
            raise RequestError("The engine is shutting down.", status=503, kind="ServiceUnavailableError")
        answer = sse.whole_answer(
            head,
            chat=chat,
            text=self._tokenizer.decode(request.output_token_ids),
            finish_reason=request.finish_reason or "error",
            counts=sse.usage(request.num_prompt_tokens, request.num_output_tokens),
        )
        return _json(answer)

    async def _stream(
        self,
        http: web.Request,
        asked: protocol.Generation,
        request: SimRequest,
        head: sse.Head,
        *,
        chat: bool,
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        response.enable_chunked_encoding()
        await response.prepare(http)
        transport = http.transport
        if transport is None:
            raise ConnectionResetError("the client has gone")
        writer = sse.EventWriter(
            chat=chat,
            head=head,
            prompt_tokens=len(asked.prompt),
            include_usage=asked.include_usage,
            continuous_usage=asked.continuous_usage,
        )
        sink = StreamSink(transport, writer, self._texts)
        self.loop.submit(request, sink)
        try:
            completed = await sink.done
        finally:
            self.loop.abort(request)
        if completed:
            await response.write(writer.closing(request.num_output_tokens))
            await response.write_eof()
        else:
            transport.abort()
        return response

    def _head(self, http: web.Request, *, chat: bool) -> sse.Head:
        base = http.headers.get("X-Request-Id") or secrets.token_hex(16)
        return sse.Head(
            identifier=f"{'chatcmpl' if chat else 'cmpl'}-{base}",
            created=int(time.time()),
            model=self._config.served_model_name,
            fingerprint=self._fingerprint,
        )

    def _new_request(self, asked: protocol.Generation) -> SimRequest:
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
        )


def _json(document: Any, status: int = 200) -> web.Response:
    body = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    return web.Response(body=body, status=status, content_type="application/json")
