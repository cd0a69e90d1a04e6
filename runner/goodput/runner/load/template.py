"""The events of one stream differ in their text and their counts only: what the first one was learnt from JSON.

An event that is byte for byte like the one that was parsed, but for a plain text and the numbers of its usage,
means the same but for that text and those numbers. So it need not be parsed again, which is most of the cost of
reading a spool. Whatever differs in any other byte is not this template's to judge: None, and JSON decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from goodput.runner.load.chunks import chunk_size

_TEXT = re.compile(rb'"(?:text|content|(reasoning(?:_content)?))":"')
_WORDS = rb"[ !#-\[\]-~]*"  # printable ASCII without escapes
_UTF8 = (
    rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)  # RFC 3629 §4, without ASCII
_ESCAPES = rb'\\["\\/bfnrt]|\\u[0-9A-Fa-f]{4}'  # RFC 8259 §7
_STRING = rb"(?:[ !#-\[\]-~]++|" + _ESCAPES + rb"|" + _UTF8 + rb")*+"  # of any text
_PLAIN = re.compile(_WORDS + rb'"')
_USAGE = b'"usage":{"prompt_tokens":'
_NUMBERS = rb'(0|[1-9][0-9]{0,8}),"total_tokens":(?:0|[1-9][0-9]{0,8}),"completion_tokens":(0|[1-9][0-9]{0,8})'
_COUNTS = re.compile(_NUMBERS)
_FIELD = b"data: "
_EVENT_END = b"\n\n"
_CHUNK_END = b"\r\n"
_FRAMING = 2 * len(_CHUNK_END)  # of a chunk, besides its size
_SEPARATOR, _START = b"\x01", b"\x00"  # no JSON has them, so no common read has


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
    reasoning: bool = False  # the text is reasoning

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
        template = cls(data[: text.end()], data[end.end() : usage], data[counts.end() :], text[1] is not None)
        return template if template.match(data) == meaning else None

    def event(self, plain: Plain) -> bytes:
        """The event of this form that says ``plain``, whose text needs no escapes."""
        text, prompt, output = plain
        counts = f'{prompt},"total_tokens":{prompt + output},"completion_tokens":{output}'
        return self.before + text.encode() + b'"' + self.between + counts.encode() + self.after

    def match(self, data: bytes) -> Plain | None:
        """What the event says, if it has this form."""
        before, between, after, _ = self
        if not data.startswith(before):
            return None
        end = _PLAIN.match(data, len(before))
        if end is None or not data.startswith(between, end.end()):
            return None
        counts = _COUNTS.match(data, end.end() + len(between))
        if counts is None or data[counts.end() :] != after:
            return None
        return Plain(data[len(before) : end.end() - 1].decode("ascii"), int(counts[1]), int(counts[2]))


class Common(NamedTuple):
    """What common reads say, one entry per read, as its bytes."""

    texts: tuple[bytes, ...] = ()
    prompt_tokens: tuple[bytes, ...] = ()
    output_tokens: tuple[bytes, ...] = ()


class CommonReads:
    """Reads that are one chunk, which is one event of the template, and nothing else: most reads of most streams.

    Of their texts nobody asks more than whether there is one, so here they may be any that JSON can have.

    They are told in one pass of one regular expression over all of them, which sees every byte: joined by a byte that
    none of them has, and what is the stream's own (its id) replaced by another such byte, so that the expression is
    the same for all streams of a server.
    """

    __slots__ = ("_event", "_start")

    def __init__(self, template: Template) -> None:
        self._start = _CHUNK_END + _FIELD + template.before
        self._event = _event(template.between, template.after)

    def match(self, reads: Sequence[bytes]) -> Common:
        """What the first of these reads say, up to the one that has another form in any byte."""
        joined = _SEPARATOR.join((*reads, b""))
        if joined.count(_SEPARATOR) != len(reads) or _START in joined or not reads:
            return Common()
        found = self._event.findall(joined.replace(self._start, _START))
        if not found[-1][0]:  # what has another form
            found.pop()
        sizes, *said = zip(*found, strict=True) if found else ((), (), (), ())
        framed = set(zip(sizes, map(len, reads), strict=False))
        if not all(_fits(size, length) for size, length in framed):
            return self.match(reads[: _misfit(sizes, reads)])
        return Common(*said)


@lru_cache(maxsize=256)
def _event(between: bytes, after: bytes) -> re.Pattern[bytes]:
    """A common read, with what changes from one to the next as groups; or else, without groups, all that is left."""
    read = rb"([0-9A-Fa-f]{1,8})" + _START + b"(" + _STRING + b')"' + re.escape(between) + _NUMBERS
    return re.compile(read + re.escape(after + _EVENT_END + _CHUNK_END) + _SEPARATOR + rb"|(?s:.+)")


def _fits(size: bytes, length: int) -> bool:
    """Whether a read of that length is the chunk whose size it says."""
    return chunk_size(size) == length - len(size) - _FRAMING


def _misfit(sizes: Sequence[bytes], reads: Sequence[bytes]) -> int:
    """The first read that is no chunk of the size that it says."""
    return next(k for k, size in enumerate(sizes) if not _fits(size, len(reads[k])))
