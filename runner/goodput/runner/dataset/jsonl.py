"""JSON lines: one request per line, ``{"prompt" | "prompt_token_ids" | "messages": …, "output_tokens": n}``."""

from __future__ import annotations

import json
from typing import Any

from goodput.analysis.schema.base import Endpoint
from goodput.runner.dataset.rows import DatasetError, Row, Rows
from goodput.runner.load.prompts import Messages

_PROMPTS = ("prompt", "prompt_token_ids", "messages")
_OUTPUTS = ("output_tokens", "max_tokens")
_MOST_ID = 0xFFFF_FFFF


def parse_jsonl(data: bytes, endpoint: Endpoint) -> Rows:
    """The requests of a file; blank lines are none.

    ``max_tokens`` is another name for ``output_tokens``; other keys are let be. Raises `DatasetError` with the line
    of what cannot be sent to this endpoint.
    """
    rows = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            rows.append(_row(line, f"line {number}", endpoint))
    return Rows(tuple(rows), 0)


def _row(line: bytes, place: str, endpoint: Endpoint) -> Row:
    try:
        document = json.loads(line)
    except ValueError as error:
        raise DatasetError(place, f"is no JSON: {error}", "write one JSON object per line") from error
    if not isinstance(document, dict):
        raise DatasetError(place, "is no JSON object", 'write {"prompt": "...", "output_tokens": 100}')
    given = [name for name in _PROMPTS if name in document]
    if len(given) != 1:
        raise DatasetError(place, f"has {len(given)} of {', '.join(_PROMPTS)}", "give exactly one of them")
    prompt, output = document[given[0]], _output(document, place)
    match given[0]:
        case "prompt":
            return Row(output, text=_text(prompt, place))
        case "messages":
            return Row(output, messages=_messages(prompt, place, endpoint))
        case _:
            return Row(output, ids=_ids(prompt, place, endpoint))


def _output(document: dict[str, Any], place: str) -> int:
    given = [name for name in _OUTPUTS if name in document]
    if len(given) != 1:
        raise DatasetError(place, f"has {len(given)} of output_tokens and max_tokens", "give one of them")
    output = document[given[0]]
    if type(output) is not int or output < 1:
        raise DatasetError(place, f"has {given[0]} {output!r}", "write a whole number from 1 on")
    return output


def _text(prompt: Any, place: str) -> str:
    if not isinstance(prompt, str) or not prompt:
        raise DatasetError(place, "has a prompt that is no text", "write the prompt's text")
    return prompt


def _ids(prompt: Any, place: str, endpoint: Endpoint) -> tuple[int, ...]:
    if endpoint == "chat":
        raise DatasetError(place, "has prompt_token_ids, which a chat cannot take", "use endpoint completions")
    if not isinstance(prompt, list) or not prompt or not all(_is_id(token) for token in prompt):
        raise DatasetError(place, "has prompt_token_ids that are no token ids", "write a list such as [1, 15043]")
    return tuple(prompt)


def _is_id(token: object) -> bool:
    return type(token) is int and 0 <= token <= _MOST_ID


def _messages(messages: Any, place: str, endpoint: Endpoint) -> Messages:
    if endpoint != "chat":
        raise DatasetError(place, "has messages, which completions cannot take", "use endpoint chat")
    fix = 'write [{"role": "user", "content": "..."}]'
    if not isinstance(messages, list) or not messages:
        raise DatasetError(place, "has messages that are no list", fix)
    for message in messages:
        if not isinstance(message, dict) or message.keys() != {"role", "content"}:
            raise DatasetError(place, "has a message without just role and content", fix)
        if not all(isinstance(value, str) for value in message.values()):
            raise DatasetError(place, "has a message whose role or content is no text", fix)
    return messages
