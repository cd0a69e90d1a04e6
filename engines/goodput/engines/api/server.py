"""vLLM 0.32's OpenAI-compatible HTTP API on top of an engine."""

import json
import secrets
import time
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from aiohttp import web
from prometheus_client import CollectorRegistry

from goodput.engines.api import bodies, protocol, sse
from goodput.engines.api.engine import Request, Sink, Texts, Tokenizer
from goodput.engines.api.guard import Guard, json_answer
from goodput.engines.api.http_metrics import HttpMetrics
from goodput.engines.api.stream import StreamSink, WholeSink
from goodput.engines.api.utility import Served, UtilityRoutes
from goodput.engines.errors import RequestError

_MAX_BODY_BYTES = 64 << 20
_RequestT = TypeVar("_RequestT", bound=Request)


class ApiServer(ABC, Generic[_RequestT]):
    """The HTTP handlers. Build it inside the event loop that will run it.

    Args:
        served: the model.
        tokenizer: of the model.
        registry: behind `/metrics`.
        api_keys: tokens that `/v1` asks for; empty for none.
    """

    def __init__(
        self, served: Served, tokenizer: Tokenizer, registry: CollectorRegistry, api_keys: tuple[str, ...] = ()
    ) -> None:
        self._served = served
        self._tokenizer = tokenizer
        self._utility = UtilityRoutes(served, tokenizer, registry)
        self._middlewares = [HttpMetrics(registry).middleware, Guard(api_keys).middleware]

    @abstractmethod
    def new_request(self, asked: protocol.Generation) -> _RequestT:
        """A request of the engine. Raises `RequestError` for what the engine does not do."""

    @abstractmethod
    def submit(self, request: _RequestT, sink: Sink) -> None:
        """Hands it to the engine."""

    @abstractmethod
    def abort(self, request: _RequestT) -> None:
        """Ends a request whose client is gone; nothing happens if it has ended."""

    @abstractmethod
    def texts(self, asked: protocol.Generation) -> Texts:
        """For the tokens of one stream."""

    @abstractmethod
    def server_info(self, *, as_text: bool) -> dict[str, Any]:
        """`GET /server_info`."""

    @property
    @abstractmethod
    def num_unfinished(self) -> int:
        """Requests submitted and not ended."""

    @abstractmethod
    async def wait_idle(self) -> None:
        """Returns when no request is unfinished."""

    @abstractmethod
    def abort_all(self) -> None:
        """Gives all requests up, telling their sinks."""

    def close(self) -> None:
        """The engine is no longer needed."""

    def routes(self) -> list[web.RouteDef]:
        """All routes."""
        return [
            *self._utility.routes(),
            web.get("/server_info", self._server_info),
            web.post("/v1/completions", self._completions),
            web.post("/v1/chat/completions", self._chat),
        ]

    def application(self) -> web.Application:
        """The aiohttp application."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=self._middlewares)
        app.add_routes(self.routes())
        return app

    async def _server_info(self, request: web.Request) -> web.Response:
        kind = request.query.get("config_format", "text")
        if kind not in ("text", "json"):
            raise RequestError("config_format must be 'text' or 'json'", kind="Bad Request", param="query")
        return json_answer(self.server_info(as_text=kind == "text"))

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        body = bodies.parse(bodies.CompletionBody, await request.read())
        protocol.check_model(body.model, self._served.name)
        asked = protocol.check_completion(body, self._tokenizer, self._served.max_model_len)
        return await self._answer(request, asked, chat=False)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = bodies.parse(bodies.ChatBody, await request.read())
        protocol.check_model(body.model, self._served.name)
        asked = protocol.check_chat(body, self._tokenizer, self._served.max_model_len)
        return await self._answer(request, asked, chat=True)

    async def _answer(self, http: web.Request, asked: protocol.Generation, *, chat: bool) -> web.StreamResponse:
        head = self._head(http, chat=chat)
        request = self.new_request(asked)
        if asked.stream:
            return await self._stream(http, asked, request, head, chat=chat)
        sink = WholeSink()
        self.submit(request, sink)
        try:
            completed = await sink.done
        finally:
            self.abort(request)
        if not completed:
            raise RequestError("The engine is shutting down.", status=503, kind="ServiceUnavailableError")
        answer = sse.whole_answer(
            head,
            chat=chat,
            text=json.loads(self.texts(asked).of(request.output_token_ids)),
            finish_reason=request.finish_reason or "error",
            counts=sse.usage(request.num_prompt_tokens, request.num_output_tokens),
            ids=(asked.prompt, request.output_token_ids) if asked.return_ids else None,
        )
        return json_answer(answer)

    async def _stream(
        self,
        http: web.Request,
        asked: protocol.Generation,
        request: _RequestT,
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
            prompt_ids=asked.prompt if asked.return_ids else None,
        )
        sink = StreamSink(transport, writer, self.texts(asked))
        self.submit(request, sink)
        try:
            completed = await sink.done
        finally:
            self.abort(request)
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
            model=self._served.name,
            fingerprint=self._served.fingerprint,
        )
