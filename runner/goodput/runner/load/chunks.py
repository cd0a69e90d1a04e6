"""HTTP/1.1 chunked transfer coding (RFC 9112 §7.1), fed in pieces of any size."""

from __future__ import annotations

import re

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\Z")
_MAX_LINE = 16 << 10
_PAYLOAD, _PAYLOAD_END, _SIZE_LINE, _TRAILER, _COMPLETE = range(5)


class ChunkDecoder:
    """Takes the framing off.

    Attributes:
        complete: the last chunk and the trailer have been read.
        error: what is wrong with the framing; nothing behind it is payload. Bytes behind the last chunk are wrong too.
    """

    __slots__ = ("_held", "_left", "_state", "complete", "error")

    def __init__(self) -> None:
        self._held = b""  # the beginning of a line
        self._left = 0  # payload bytes left in this chunk
        self._state = _SIZE_LINE
        self.complete = False
        self.error: str | None = None

    @property
    def between(self) -> bool:
        """The next byte begins a chunk."""
        return self._state == _SIZE_LINE and not self._held

    def feed(self, data: bytes) -> bytes:
        """The payload in ``data``, up to an error."""
        if self._state == _SIZE_LINE and not self._held:  # nearly always: one read is one chunk
            line, found, rest = data.partition(b"\r\n")
            if found and rest[-2:] == b"\r\n":
                size = chunk_size(line)
                if size and size + 2 == len(rest):
                    return rest[:-2]
        return self._slow(data)

    def _slow(self, data: bytes) -> bytes:
        payload: list[bytes] = []
        at, end = 0, len(data)
        while at < end and self.error is None:
            if self._state == _PAYLOAD:
                taken = data[at : at + self._left]
                payload.append(taken)
                at += len(taken)
                self._left -= len(taken)
                if not self._left:
                    self._state = _PAYLOAD_END
                continue
            if self._state == _COMPLETE:
                self.error = "bytes behind the last chunk"
                break
            stop = data.find(b"\n", at)
            self._held += data[at:] if stop < 0 else data[at : stop + 1]
            if len(self._held) > _MAX_LINE:
                self.error = "a framing line without end"
            if stop < 0:
                break
            at = stop + 1
            line, self._held = self._held, b""
            self._line(line)
        return b"".join(payload)

    def _line(self, line: bytes) -> None:
        if not line.endswith(b"\r\n"):
            self.error = "a framing line that does not end with CR LF"
        elif self._state == _PAYLOAD_END:
            if len(line) > 2:
                self.error = "a chunk is longer than it says"
            self._state = _SIZE_LINE
        elif self._state == _SIZE_LINE:
            size = chunk_size(line[:-2])
            if size is None:
                self.error = "a chunk size that is no number"
            self._left = size or 0
            self._state = _PAYLOAD if size else _TRAILER
        elif b"\r" in line[:-2]:
            self.error = "a carriage return inside a trailer"
        elif len(line) == 2:
            self._state = _COMPLETE
            self.complete = True


def chunk_size(line: bytes) -> int | None:
    """The size that a chunk's first line says, without its line end; None where it says none."""
    match = _SIZE.match(line)
    return None if match is None else int(match[1], 16)
