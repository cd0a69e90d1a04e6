"""An independent, slow and strict reading of a whole response: RFC 9112, the event stream standard, JSON."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

GOOD_FINISHES = {"length", "stop", "tool_calls", "function_call"}
_SPACE = " \t\n\r\x0b\x0c"  # no other character is white space to HTTP
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;[^\r\n]*)?")


class Reading(NamedTuple):
    """Every byte of a response.

    Attributes:
        status: None: no head could be read.
        stream: status, type and coding are those of a stream of events.
        payload: the body without its framing.
        framing: bytes of heads and framing.
        rejected: bytes that are neither: behind an error or behind the end.
        end: position behind the response; None: it did not come, or ends with the connection.
        broken: the framing is wrong somewhere.
        until_close: only the end of the connection ends it.
    """

    status: int | None
    stream: bool
    payload: bytes
    framing: int
    rejected: int
    end: int | None
    broken: bool
    until_close: bool


def read(data: bytes) -> Reading:
    """Take a response apart."""
    at = 0
    while True:
        stop = data.find(b"\r\n\r\n", at)
        if stop < 0:
            return Reading(
                None,
                stream=False,
                payload=b"",
                framing=len(data),
                rejected=0,
                end=None,
                broken=False,
                until_close=False,
            )
        head = _head(data[at:stop])
        at = stop + 4
        if head is None:
            return Reading(
                None,
                stream=False,
                payload=b"",
                framing=at,
                rejected=len(data) - at,
                end=None,
                broken=True,
                until_close=False,
            )
        status, fields = head
        if status >= 200:
            break
    stream = (
        status == 200
        and fields.get("content-encoding", "").lower() in {"", "identity"}
        and fields.get("content-type", "").split(";")[0].strip(_SPACE).lower() == "text/event-stream"
    )
    if status in {204, 304}:
        return Reading(status, stream, b"", at, len(data) - at, at, broken=len(data) > at, until_close=False)
    if fields.get("transfer-encoding", "").lower().split(",")[-1].strip(_SPACE) == "chunked":
        payload, end, rejected, broken = _chunks(data, at)
        return Reading(
            status, stream, payload, len(data) - len(payload) - rejected, rejected, end, broken, until_close=False
        )
    if "content-length" in fields:
        length = int(fields["content-length"])
        body = data[at : at + length]
        behind = len(data) - at - len(body)
        end = at + length if len(body) == length else None
        return Reading(status, stream, body, at, behind, end, broken=behind > 0, until_close=False)
    return Reading(status, stream, data[at:], at, 0, None, broken=False, until_close=True)


def _head(block: bytes) -> tuple[int, dict[str, str]] | None:
    first, *lines = block.decode("latin-1").split("\r\n")
    match = re.fullmatch(r"HTTP/1\.([01]) ([1-9][0-9][0-9])( [^\r\n]*)?", first)
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        key, value = name.lower(), value.strip(_SPACE)
        if not colon or not name or any(c in _SPACE for c in (name[0], name[-1])):
            return None
        if key == "content-length" and fields.get(key, value) != value:
            return None
        fields[key] = value
    if match is None:
        return None
    chunked = fields.get("transfer-encoding", "").lower().split(",")[-1].strip(_SPACE) == "chunked"
    if not chunked and not re.fullmatch(r"[0-9]*", fields.get("content-length", "")):
        return None
    if not chunked and fields.get("content-length") == "":
        return None
    return int(match[2]), fields


def _chunks(data: bytes, at: int) -> tuple[bytes, int | None, int, bool]:
    """Payload, end, rejected bytes, whether something is wrong."""
    payload = b""
    while True:
        line = data.find(b"\n", at)
        if line < 0:
            return payload, None, 0, False
        size = _CHUNK_LINE.fullmatch(data[at : line - 1]) if data[line - 1 : line] == b"\r" and line > at else None
        if size is None:
            return payload, None, len(data) - line - 1, True
        at = line + 1
        length = int(size[1], 16)
        if length == 0:
            return (payload, *_trailer(data, at))
        part = data[at : at + length]
        payload += part
        at += len(part)
        end = data.find(b"\n", at)
        if len(part) < length or end < 0:
            return payload, None, 0, False
        if data[at : end + 1] != b"\r\n":
            return payload, None, len(data) - end - 1, True
        at = end + 1


def _trailer(data: bytes, at: int) -> tuple[int | None, int, bool]:
    while True:
        line = data.find(b"\n", at)
        if line < 0:
            return None, 0, False
        text, at = data[at : line + 1], line + 1
        if not text.endswith(b"\r\n") or b"\r" in text[:-2]:
            return None, len(data) - at, True
        if text == b"\r\n":
            return at, len(data) - at, len(data) > at


def events(payload: bytes, *, ended: bool) -> tuple[list[tuple[bytes, bytes]], bool]:
    """(name, data) of every event, and whether a line is no field. ``ended``: the body came to its end."""
    text = payload.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = text.split(b"\n")
    if not ended:  # the last line is not finished
        lines.pop()
    else:
        lines.append(b"")
    found: list[tuple[bytes, bytes]] = []
    parts: list[bytes] = []
    name, junk = b"", False
    for line in lines:
        field, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if not line:
            if parts:
                found.append((name, b"\n".join(parts)))
            name, parts = b"", []
        elif field == b"data":
            parts.append(value)
        elif field == b"event":
            name = value
        elif field and not re.fullmatch(rb"[A-Za-z_-]+", field):
            junk = True
    return found, junk


def may_be_success(reading: Reading, asked: int, *, closed: bool) -> str | None:
    """Why that response is no success; None: it may be one. ``closed``: the server ended the connection."""
    if not reading.stream or reading.broken:
        return "no stream, or broken framing"
    ended = reading.end is not None or (reading.until_close and closed)
    found, junk = events(reading.payload, ended=ended)
    said = [(name, text) for name, text in found if text.strip()]
    if junk:
        return "a line that is no field"
    if not any(text == b"[DONE]" for _, text in said):
        return "no terminal event"
    documents: list[dict[str, Any]] = []
    for name, text in said:
        if text == b"[DONE]":
            continue
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return "an event that is no JSON"
        if not isinstance(document, dict) or name == b"error":
            return "an event that is no object, or is an error"
        documents.append(document)
    return _contents(documents, asked)


def _contents(documents: list[dict[str, Any]], asked: int) -> str | None:
    finishes, counts, texts = [], [], 0
    for document in documents:
        if document.get("error") not in (None, False, "") or document.get("object") == "error":
            return "an error"
        choices = document.get("choices") if isinstance(document.get("choices"), list) else []
        texts += any(_has_text(choice) for choice in choices or [])
        finishes += [
            c["finish_reason"] for c in choices or [] if isinstance(c, dict) and isinstance(c.get("finish_reason"), str)
        ]
        usage = document.get("usage")
        count = usage.get("completion_tokens") if isinstance(usage, dict) else None
        if isinstance(count, int) and not isinstance(count, bool):
            counts.append(count)
    if not finishes or any(finish not in GOOD_FINISHES for finish in finishes):
        return "no finish reason, or a bad one"
    if counts != sorted(counts):
        return "a count that goes down"
    if (counts[-1] if counts else texts) != asked:
        return "another number of tokens"
    return None


def _has_text(choice: object) -> bool:
    if not isinstance(choice, dict):
        return False
    delta = choice.get("delta")
    delta = delta if isinstance(delta, dict) else {}
    texts = [choice.get("text"), *(delta.get(f) for f in ("content", "reasoning_content", "reasoning", "refusal"))]
    called = delta.get("tool_calls") or delta.get("function_call")
    return bool(called) or any(isinstance(text, str) and text for text in texts)
