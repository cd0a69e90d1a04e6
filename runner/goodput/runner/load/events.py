"""What one event of an OpenAI-compatible stream says. Tolerant of unknown fields, strict about errors."""

from __future__ import annotations

import json
from typing import Any

_TEXT_FIELDS = ("content", "reasoning_content", "reasoning", "refusal")
_CALL_FIELDS = ("tool_calls", "function_call")


class StreamState:
    """All that the events of one stream have said so far.

    Attributes:
        error: an error came inside the stream: its text.
        malformed: an event was not JSON, or not an object.
        done: ``[DONE]`` came.
        finish: the finish reason.
        prompt_tokens: as the latest usage says.
        output_tokens: as the latest usage says.
        continuous: usage came with choices.
        bare_text: text came without usage, so the rise of the usage does not say when tokens came.
        inconsistent: the usage went down, or the closing usage differs from the continuous one.
        events: events with choices, usage or an error.
        text: all text, joined only when asked for.
    """

    __slots__ = (
        "_highest",
        "bare_text",
        "continuous",
        "done",
        "error",
        "events",
        "finish",
        "inconsistent",
        "malformed",
        "output_tokens",
        "prompt_tokens",
        "text",
    )

    def __init__(self) -> None:
        self.error: str | None = None
        self.malformed = self.done = self.continuous = self.bare_text = self.inconsistent = False
        self.finish: str | None = None
        self.prompt_tokens: int | None = None
        self.output_tokens: int | None = None
        self._highest = 0
        self.events = 0
        self.text: list[str] = []

    def take(self, data: bytes, name: bytes) -> tuple[int, bool]:
        """Take one event. Returns the rise of ``completion_tokens`` and whether it has text."""
        if data == b"[DONE]":
            self.done = True
            return 0, False
        if not data.strip():
            return 0, False
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            self.malformed = True
            return 0, False
        if not isinstance(document, dict):
            self.malformed = True
            return 0, False
        if name == b"error" or _is_error(document):
            self.error = data[:200].decode("utf-8", "replace")
            self.events += 1
            return 0, False
        return self._chunk(document)

    def _chunk(self, document: dict[str, Any]) -> tuple[int, bool]:
        choices = document.get("choices")
        choices = choices if isinstance(choices, list) else []
        text = False
        for choice in choices:
            if isinstance(choice, dict):
                text = self._choice(choice) or text
        usage = document.get("usage")
        rise = self._usage(usage, with_choices=bool(choices)) if isinstance(usage, dict) else 0
        self.bare_text = self.bare_text or (text and not isinstance(usage, dict))
        if choices or isinstance(usage, dict):
            self.events += 1
        return rise, text

    def _choice(self, choice: dict[str, Any]) -> bool:
        finish = choice.get("finish_reason")
        if isinstance(finish, str):
            self.finish = finish
        delta = choice.get("delta")
        parts = [choice.get("text")]
        called = False
        if isinstance(delta, dict):
            parts += [delta.get(field) for field in _TEXT_FIELDS]
            called = any(delta.get(field) for field in _CALL_FIELDS)
        words = [part for part in parts if isinstance(part, str) and part]
        self.text += words
        return bool(words) or called

    def _usage(self, usage: dict[str, Any], *, with_choices: bool) -> int:
        prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if _is_count(prompt):
            self.prompt_tokens = prompt
        if not isinstance(output, int) or not _is_count(output):
            return 0
        rise = output - self._highest
        self.output_tokens, self._highest = output, max(output, self._highest)
        if rise < 0 or (rise and self.continuous and not self.bare_text and not with_choices):
            self.inconsistent = True
        self.continuous = self.continuous or with_choices
        return rise if with_choices and rise > 0 else 0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_error(document: dict[str, Any]) -> bool:
    """``{"error": …}``, vLLM's flat form ``{"object": "error", "message": …}``, or FastAPI's ``{"detail": …}``."""
    if document.get("error") or document.get("object") == "error":
        return True
    if document.get("choices") or document.get("usage"):
        return False
    return any(field in document for field in ("message", "detail", "errors"))
