"""The events of one stream differ in their text and their counts only: what the first one was learnt from JSON.

An event that is byte for byte like the one that was parsed, but for a plain text and the numbers of its usage,
means the same but for that text and those numbers. So it need not be parsed again, which is most of the cost of
reading a spool. Whatever differs in any other byte is not this template's to judge: None, and JSON decides.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from goodput.runner.load.chunks import chunk_size

_TEXT = re.compile(rb'"(?:text|content)":"')
_WORDS = rb"[ !#-\[\]-~]*"  # printable ASCII without escapes
_PLAIN = re.compile(_WORDS + rb'"')
_USAGE = b'"usage":{"prompt_tokens":'
_NUMBERS = rb'(0|[1-9][0-9]{0,8}),"total_tokens":(?:0|[1-9][0-9]{0,8}),"completion_tokens":(0|[1-9][0-9]{0,8})'
_COUNTS = re.compile(_NUMBERS)
_FIELD = b"data: "
_EVENT_END = b"\n\n"
_CHUNK_END = b"\r\n"
_LONGEST_SIZE = 8  # hex digits of a chunk's size


class Plain(NamedTuple):
    """What an event says that fits a template."""

    text: str
    prompt_tokens: int
    output_tokens: int


class Template(NamedTuple):
    """The bytes around text and counts, in vLLM's field order."""

    before: bytes  # up to the opening quote of the text
    between: bytes  # from behind its closing quote up to the first count
    after: bytes  # from behind the last count

    @classmethod
    def learn(cls, data: bytes, meaning: Plain) -> Template | None:
        """The template of an event with that meaning; None where it has another form, or two places to mistake."""
        text = _TEXT.search(data)
        if text is None or len(_TEXT.findall(data)) != 1 or data.count(_USAGE) != 1:
            return None
        end = _PLAIN.match(data, text.end())
        usage = data.find(_USAGE) + len(_USAGE)
        counts = _COUNTS.match(data, usage)
        if end is None or counts is None or usage < end.end():
            return None
        template = cls(data[: text.end()], data[end.end() : usage], data[counts.end() :])
        return template if template.match(data) == meaning else None

    def match(self, data: bytes) -> Plain | None:
        """What the event says, if it has this form."""
        before, between, after = self
        if not data.startswith(before):
            return None
        end = _PLAIN.match(data, len(before))
        if end is None or not data.startswith(between, end.end()):
            return None
        counts = _COUNTS.match(data, end.end() + len(between))
        if counts is None or data[counts.end() :] != after:
            return None
        return Plain(data[len(before) : end.end() - 1].decode("ascii"), int(counts[1]), int(counts[2]))


class CommonRead:
    """A read that is one chunk, which is one event of the template, and nothing else: most reads of most streams."""

    __slots__ = ("_end", "_end_length", "_start", "_start_length", "_variable")

    def __init__(self, template: Template) -> None:
        self._start = _FIELD + template.before
        self._end = template.after + _EVENT_END + _CHUNK_END
        self._start_length, self._end_length = len(self._start), len(self._end)
        self._variable = _variable(template.between).match

    def match(self, data: bytes) -> re.Match[bytes] | None:
        """Text, prompt tokens and output tokens as groups, if the read has this form to the last byte."""
        line = data.find(_CHUNK_END, 1, _LONGEST_SIZE + 2)
        begin = line + 2
        if line < 0 or not data.startswith(self._start, begin) or not data.endswith(self._end):
            return None
        found = self._variable(data, begin + self._start_length)
        length = len(data)
        if found is None or found.end() + self._end_length != length:
            return None
        return found if _size(data[:line]) == length - begin - 2 else None


@lru_cache(maxsize=256)
def _variable(between: bytes) -> re.Pattern[bytes]:
    """What changes from event to event, and the bytes between: these are the same for all streams of a server."""
    return re.compile(b"(" + _WORDS + b')"' + re.escape(between) + _NUMBERS)


_size = lru_cache(maxsize=4096)(chunk_size)
