"""A request as it arrives: its bytes, what it asks for, its number (pure)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from bench.golden.script import Match

_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_NUMBER = re.compile(rb"req-(\d+)")
DEFAULT_TOKENS = 16  # what OpenAI's completions give where nothing is asked


@dataclass(frozen=True)
class Request:
    """One whole request."""

    method: str
    path: str
    head: bytes
    body: bytes
    close: bool  # the client wants the connection closed afterwards

    @property
    def chat(self) -> bool:
        """Chat completions, not completions."""
        return self.path.endswith("/chat/completions")

    def document(self) -> dict[str, Any]:
        """The body; empty where it is no JSON object."""
        try:
            document = json.loads(self.body)
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}


def take_request(received: bytes) -> tuple[Request, bytes] | None:
    """The first request and the bytes behind it; None: it is not whole yet. Bodies have a Content-Length."""
    end = received.find(_HEAD_END)
    if end < 0:
        return None
    head = received[:end]
    length = _LENGTH.search(head)
    stop = end + len(_HEAD_END) + (int(length[1]) if length else 0)
    if len(received) < stop:
        return None
    method, path, version = (*head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2), "", "")[:3]
    close = _CLOSE.search(head) is not None or version.strip() == "HTTP/1.0"
    return Request(method, path, head, received[end + len(_HEAD_END) : stop], close), received[stop:]


def asked_tokens(document: dict[str, Any]) -> int:
    """The number of output tokens that a request asks for."""
    for field in ("max_completion_tokens", "max_tokens", "min_tokens"):
        if isinstance(document.get(field), int):
            return int(document[field])
    return DEFAULT_TOKENS


def prompt_tokens(document: dict[str, Any]) -> int:
    """The prompt's length: ids where there are ids, else words."""
    prompt = document.get("prompt")
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], int):
        return len(prompt)
    if isinstance(prompt, str):
        return len(prompt.split())
    messages = document.get("messages")
    return len(json.dumps(messages).split()) if messages else 1


def number(match: Match, request: Request, document: dict[str, Any], order: int) -> int | None:
    """The request's number in the script; None where it says none."""
    if match == "order":
        return order
    if match == "prompt":
        prompt = document.get("prompt")
        first = prompt[0] if isinstance(prompt, list) and prompt else None
        return first if isinstance(first, int) else None
    found = _NUMBER.search(request.head) or _NUMBER.search(request.body)
    return int(found[1]) if found else None
