"""Server-sent events (WHATWG HTML §9.2), fed in pieces of any size."""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\n|\r")
_FIELD = re.compile(rb"[A-Za-z_-]+\Z")
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event with data."""

    data: bytes
    name: bytes  # of the ``event:`` field; empty: a message


class SseDecoder:
    """Splits a stream into events. Comments and other fields are dropped; events without data too.

    Attributes:
        junk: lines that are no field at all, e.g. HTML or a bare JSON error.
    """

    __slots__ = ("_data", "_held", "_name", "_skip_lf", "_started", "junk")

    def __init__(self) -> None:
        self._held = b""  # an unfinished line
        self._data: list[bytes] = []
        self._name = b""
        self._skip_lf = False
        self._started = False
        self.junk = 0

    @property
    def between(self) -> bool:
        """The next byte begins an event."""
        return not (self._held or self._data or self._name or self._skip_lf)

    def feed(self, data: bytes) -> list[Event]:
        """The events that ``data`` completes."""
        if (
            self.between
            and data.startswith(b"data: ")
            and data.find(b"\n") == len(data) - 2
            and data.endswith(b"\n\n")
            and b"\r" not in data
        ):  # nearly always: one read is one event of one line
            self._started = True
            return [Event(data[6:-2], b"")]
        return self._slow(data)

    def _slow(self, data: bytes) -> list[Event]:
        if self._skip_lf and data:
            data = data[1:] if data.startswith(b"\n") else data
            self._skip_lf = False
        data = self._held + data
        if not self._started:
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._held = data
                return []
            data = data.removeprefix(_BOM)
            self._started = True
        events: list[Event] = []
        at = 0
        for match in _LINE_END.finditer(data):
            self._line(data[at : match.start()], events)
            at = match.end()
            self._skip_lf = at == len(data) and match[0] == b"\r"
        self._held = data[at:]
        return events

    def flush(self) -> list[Event]:
        """The unfinished event at the end of the stream. The standard drops it; the caller says what it means."""
        events: list[Event] = []
        if self._held:
            held, self._held = self._held, b""
            self._line(held, events)
        self._line(b"", events)
        return events

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not line:
            if self._data:
                events.append(Event(b"\n".join(self._data), self._name))
            self._data, self._name = [], b""
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        elif field and not _FIELD.match(field):
            self.junk += 1
