"""What one event of an OpenAI-compatible stream says. Tolerant of unknown fields, strict about errors."""

from __future__ import annotations

import json
from itertools import accumulate
from operator import sub
from typing import Any

from goodput.runner.load.template import Common, CommonReads, Plain, Template

LESSONS = 8  # events that are looked at for a template, the first and those that do not fit it, before giving up
GOOD_FINISHES = frozenset({"length", "stop", "tool_calls", "function_call"})
_ANSWER_FIELDS = ("content", "refusal")
_REASONING_FIELDS = ("reasoning_content", "reasoning")
_CALL_FIELDS = ("tool_calls", "function_call")
_PROBE = Plain("probe", 1, 2)


class StreamState:
    """All that the events of one stream have said so far.

    Attributes:
        error: an error came inside the stream: its text.
        malformed: an event was not JSON, or not an object.
        done: ``[DONE]`` came.
        finish: the finish reason; once a bad one came, that one.
        prompt_tokens: as the latest usage says.
        output_tokens: as the latest usage says.
        continuous: usage came with choices.
        common: recognises the common reads of this stream, once an event has taught it.
        bare_text: text came without usage, so the rise of the usage does not say when tokens came.
        inconsistent: the usage went down, or the closing usage differs from the continuous one.
        reasoned: there was reasoning.
        answered: there was text that is no reasoning, or a call.
        events: events with choices, usage or an error.
        text: all text, joined only when asked for.
    """

    __slots__ = (
        "_highest",
        "_lessons",
        "_template",
        "answered",
        "bare_text",
        "common",
        "continuous",
        "done",
        "error",
        "events",
        "finish",
        "inconsistent",
        "malformed",
        "output_tokens",
        "prompt_tokens",
        "reasoned",
        "text",
    )

    def __init__(self, *, learns: bool = True) -> None:
        self.error: str | None = None
        self.malformed = self.done = self.continuous = self.bare_text = self.inconsistent = False
        self.reasoned = self.answered = False
        self.finish: str | None = None
        self.prompt_tokens: int | None = None
        self.output_tokens: int | None = None
        self._highest = 0
        self._template: Template | None = None
        self.common: CommonReads | None = None
        self._lessons = LESSONS if learns else 0
        self.events = 0
        self.text: list[str] = []

    @property
    def complete(self) -> bool:
        """It came to its end: a finish reason and ``[DONE]``."""
        return self.done and self.finish is not None

    def take(self, data: bytes, name: bytes) -> tuple[int, bool]:
        """Take one event. Returns the rise of ``completion_tokens`` and whether it has text."""
        if self._template is not None and not name:
            plain = self._template.match(data)
            if plain is not None:
                return self._plain(plain)
        if data == b"[DONE]" or not data.strip():
            self.done = self.done or bool(data.strip())
            return 0, False
        document = _object(data)
        if document is None:
            self.malformed = True
            return 0, False
        if name == b"error" or _is_error(document):
            self.error = data[:200].decode("utf-8", "replace")
            self.events += 1
            return 0, False
        before = len(self.text)
        told = self._chunk(document)
        if self._lessons and not self.finish:
            self._learn(data, document, self.text[before:])
        return told

    def take_common(self, found: Common) -> list[int]:
        """As `take`, for what ``common`` has found: the rises. Texts are not kept: with usage nobody has to count."""
        counts = list(map(int, found.output_tokens))
        highest = list(accumulate(counts, max, initial=self._highest))
        rises = list(map(sub, counts, highest))
        if min(rises) < 0:
            self.inconsistent = True
            rises = [max(0, rise) for rise in rises]
        self._highest, self.output_tokens = highest[-1], counts[-1]
        self.prompt_tokens = int(found.prompt_tokens[-1])
        self.events += len(counts)
        self.continuous = True
        if any(found.texts):
            self._said()
        return rises

    def _plain(self, plain: Plain) -> tuple[int, bool]:
        self.events += 1
        self.prompt_tokens = plain.prompt_tokens
        if plain.text:
            self.text.append(plain.text)
            self._said()
        return self._rise(plain.output_tokens, with_choices=True), bool(plain.text)

    def _said(self) -> None:
        """There was a text of the template's kind."""
        assert self._template is not None
        if self._template.reasoning:
            self.reasoned = True
        else:
            self.answered = True

    def _learn(self, data: bytes, document: dict[str, Any], words: list[str]) -> None:
        """See whether this event is the common one: a single choice with one text, no finish, and usage.

        The first event of a chat has a role, and reasoning comes before the answer: what fits no more is learnt anew.
        """
        self._lessons -= 1
        choices, usage = document.get("choices"), document.get("usage")
        if not isinstance(choices, list) or len(choices) != 1 or len(words) > 1 or not isinstance(usage, dict):
            return
        delta = choices[0].get("delta") if isinstance(choices[0], dict) else None
        if isinstance(delta, dict) and any(delta.get(field) for field in _CALL_FIELDS):
            return
        prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if isinstance(prompt, int) and isinstance(output, int):
            template = Template.learn(data, Plain("".join(words), prompt, output))
            if template is not None and _holds(template):
                self._template, self.common = template, CommonReads(template)

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
        if isinstance(finish, str) and (self.finish is None or self.finish in GOOD_FINISHES):
            self.finish = finish
        delta = choice.get("delta")
        answer, reasoning, called = _text(choice.get("text")), "", False
        if isinstance(delta, dict):
            answer += "".join(_text(delta.get(field)) for field in _ANSWER_FIELDS)
            reasoning = "".join(_text(delta.get(field)) for field in _REASONING_FIELDS)
            called = any(delta.get(field) for field in _CALL_FIELDS)
        if reasoning:
            self.reasoned = True
            self.text.append(reasoning)
        if answer or called:
            self.answered = True
            self.text += [answer] if answer else []
        return bool(answer or reasoning or called)

    def _usage(self, usage: dict[str, Any], *, with_choices: bool) -> int:
        prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if _is_count(prompt):
            self.prompt_tokens = prompt
        if not isinstance(output, int) or not _is_count(output):
            return 0
        return self._rise(output, with_choices=with_choices)

    def _rise(self, output: int, *, with_choices: bool) -> int:
        rise = output - self._highest
        self.output_tokens, self._highest = output, max(output, self._highest)
        if rise < 0 or (rise and self.continuous and not self.bare_text and not with_choices):
            self.inconsistent = True
        self.continuous = self.continuous or with_choices
        return rise if with_choices and rise > 0 else 0


def _holds(template: Template) -> bool:
    """Whether JSON has text and counts where the template has them: an empty text may be that of any field."""
    told = StreamState(learns=False)
    told.take(template.event(_PROBE), b"")
    return (told.text, told.prompt_tokens, told.output_tokens, told.reasoned, told.answered) == (
        [_PROBE.text], _PROBE.prompt_tokens, _PROBE.output_tokens, template.reasoning, not template.reasoning
    )  # fmt: skip


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_error(document: dict[str, Any]) -> bool:
    """``{"error": …}``, vLLM's flat form ``{"object": "error", "message": …}``, or FastAPI's ``{"detail": …}``.

    An error object that says nothing is one; null, false and an empty text are none.
    """
    if document.get("error") not in (None, False, "") or document.get("object") == "error":
        return True
    if document.get("choices") or document.get("usage"):
        return False
    return any(field in document for field in ("message", "detail", "errors"))
