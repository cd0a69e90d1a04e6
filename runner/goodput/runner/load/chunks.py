"""HTTP/1.1 chunked transfer coding (RFC 9112 §7.1), fed in pieces of any size."""

from __future__ import annotations

import re

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\Z")
_MAX_LINE = 16 << 10
_PAYLOAD, _PAYLOAD_END, _SIZE_LINE, _TRAILER, _COMPLETE = range(5)


class ChunkError(ValueError):
    """The framing is broken."""


class ChunkDecoder:
    """Takes the framing off.

    Attributes:
        complete: the last chunk and the trailer have been read.
    """

    __slots__ = ("_held", "_left", "_state", "complete")

    def __init__(self) -> None:
        self._held = b""  # the beginning of a line
        self._left = 0  # payload bytes left in this chunk
        self._state = _SIZE_LINE
        self.complete = False

    def feed(self, data: bytes) -> bytes:
        """The payload in ``data``. Raises `ChunkError`; bytes behind the last chunk are an error too."""
        if self._state == _SIZE_LINE and not self._held:  # nearly always: one read is one chunk
            line, found, rest = data.partition(b"\r\n")
            if found and rest[-2:] == b"\r\n" and len(line) <= 8 and line.isalnum():
                size = _size(line)
                if size and size + 2 == len(rest):
                    return rest[:-2]
        return self._slow(data)

    def _slow(self, data: bytes) -> bytes:
        payload: list[bytes] = []
        at, end = 0, len(data)
        while at < end:
            if self._state == _PAYLOAD:
                taken = data[at : at + self._left]
                payload.append(taken)
                at += len(taken)
                self._left -= len(taken)
                if not self._left:
                    self._state = _PAYLOAD_END
                continue
            if self._state == _COMPLETE:
                raise ChunkError("bytes behind the last chunk")
            stop = data.find(b"\n", at)
            self._held += data[at:] if stop < 0 else data[at : stop + 1]
            if len(self._held) > _MAX_LINE:
                raise ChunkError("a framing line without end")
            if stop < 0:
                break
            at = stop + 1
            line, self._held = self._held, b""
            if not line.endswith(b"\r\n"):
                raise ChunkError("a framing line that does not end with CR LF")
            self._line(line[:-2])
        return b"".join(payload)

    def _line(self, line: bytes) -> None:
        if self._state == _PAYLOAD_END:
            if line:
                raise ChunkError("a chunk is longer than it says")
            self._state = _SIZE_LINE
        elif self._state == _SIZE_LINE:
            self._left = _size(line)
            self._state = _PAYLOAD if self._left else _TRAILER
        elif not line:
            self._state = _COMPLETE
            self.complete = True


def _size(line: bytes) -> int:
    match = _SIZE.match(line)
    if match is None:
        raise ChunkError("a chunk size that is no number")
    return int(match[1], 16)
