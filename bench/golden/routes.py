"""What the golden server answers besides completions (pure but for ``POST /truth/reset``)."""

from __future__ import annotations

import json
from collections.abc import Callable

from bench.golden.render import head
from bench.golden.request import Request
from bench.golden.truth import Truth

ELSEWHERE = "/elsewhere"  # where redirects lead: a proper stream, so that following one is seen


def answer(request: Request, truth: Truth) -> bytes:
    """The whole response."""
    route = _ROUTES.get(f"{request.method} {request.path.partition('?')[0]}")
    if route is None:
        return _response("404 Not Found", b'{"error":{"message":"no such route"}}', "application/json")
    return route(request, truth)


def _truth(request: Request, truth: Truth) -> bytes:
    return _response("200 OK", truth.lines(sends="events=0" not in request.path), "application/x-ndjson")


def _reset(_: Request, truth: Truth) -> bytes:
    truth.reset()
    return _json({})


def _models(_: Request, __: Truth) -> bytes:
    return _json({"object": "list", "data": [{"id": "golden", "object": "model", "owned_by": "golden"}]})


def _tokenize(request: Request, _: Truth) -> bytes:
    """One token per word."""
    document = request.document()
    text = document.get("prompt") or " ".join(str(m.get("content", "")) for m in document.get("messages", ()))
    count = len(str(text).split())
    return _json({"count": count, "max_model_len": 1 << 20, "tokens": list(range(count))})


_ROUTES: dict[str, Callable[[Request, Truth], bytes]] = {
    "GET /truth": _truth,
    "GET /truth/summary": lambda _, truth: _json(truth.summary()),
    "POST /truth/reset": _reset,
    "GET /health": lambda _, __: _response("200 OK", b"", "text/plain"),
    "GET /v1/models": _models,
    "POST /tokenize": _tokenize,
}


def _json(document: object) -> bytes:
    return _response("200 OK", json.dumps(document).encode(), "application/json")


def _response(status: str, body: bytes, content_type: str) -> bytes:
    return head(status, content_type, f"Content-Length: {len(body)}") + body
