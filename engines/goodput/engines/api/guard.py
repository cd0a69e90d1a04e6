"""Errors of the API as vLLM words them, and its keys."""

import hashlib
import json
import secrets
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from goodput.engines.errors import RequestError

_GUARDED = "/v1"


def json_answer(document: Any, status: int = 200) -> web.Response:
    """A JSON body in vLLM's spelling."""
    body = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    return web.Response(body=body, status=status, content_type="application/json")


class Guard:
    """Asks for a key where there are any, and turns refusals into error bodies."""

    def __init__(self, api_keys: tuple[str, ...]) -> None:
        self._key_hashes = [hashlib.sha256(key.encode()).digest() for key in api_keys]

    @property
    def middleware(self) -> Middleware:
        """For the aiohttp application."""

        @web.middleware
        async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
            if self._key_hashes and request.path.startswith(_GUARDED) and not self._authorized(request):
                return json_answer({"error": "Unauthorized"}, status=401)
            try:
                return await handler(request)
            except RequestError as error:
                return _error(str(error), error.kind, error.param, error.status)
            except web.HTTPClientError as error:
                return _error(error.reason, error.reason, None, error.status)

        return answer_errors

    def _authorized(self, request: web.Request) -> bool:
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        digest = hashlib.sha256(key.encode()).digest()
        known = [secrets.compare_digest(digest, expected) for expected in self._key_hashes]
        return scheme.lower() == "bearer" and any(known)


def _error(message: str, kind: str, param: str | None, status: int) -> web.Response:
    return json_answer({"error": {"message": message, "type": kind, "param": param, "code": status}}, status=status)
