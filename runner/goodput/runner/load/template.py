"""The events of one stream differ in their text and their counts only: what the first one was learnt from JSON.

An event that is byte for byte like the one that was parsed, but for a plain text and the numbers of its usage,
means the same but for that text and those numbers. So it need not be parsed again, which is most of the cost of
reading a spool. Whatever differs in any other byte is not this template's to judge: None, and JSON decides.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_TEXT = re.compile(rb'"(?:text|content)":"')
_PLAIN = re.compile(rb'[ !#-\[\]-~]*"')  # printable ASCII without escapes, and the closing quote
_USAGE = b'"usage":{"prompt_tokens":'
_COUNTS = re.compile(
    rb'(0|[1-9][0-9]{0,8}),"total_tokens":(?:0|[1-9][0-9]{0,8}),"completion_tokens":(0|[1-9][0-9]{0,8})'
)


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
