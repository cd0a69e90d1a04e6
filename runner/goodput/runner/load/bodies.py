"""The request file: bodies serialised before the cell starts, read at send time (standard library only).

Where more requests are sent than were prepared (a long tail, a closed loop on a fast server), the prepared
ones behind `first_recycled` are taken again with the ids of their prompt rotated: same length, same ids, but
another first block, so still no prompt that the server has seen, for about a third as many rounds as a prompt
has ids. A chat's text cannot be rotated; it repeats.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

ENTRY = struct.Struct("<QIIII")  # offset, length, position of the first id (0: none), prompt and output tokens
_BODY_END = 2  # bytes behind the ids
_GOLDEN = 0.6180339887498949  # its multiples modulo 1 keep the largest possible distance from each other


class Bodies:
    """Reads the file that `prepare.write_requests` wrote."""

    def __init__(self, bodies: Path, entries: Path, first_recycled: int) -> None:
        self._fd = os.open(bodies, os.O_RDONLY)
        with entries.open("rb") as file:
            self._entries = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.count = len(self._entries) // ENTRY.size
        self._first_recycled = min(first_recycled, self.count - 1)

    def _place(self, index: int) -> tuple[int, int]:
        if index < self.count:
            return index, 0
        recycled = self.count - self._first_recycled
        return self._first_recycled + (index - self.count) % recycled, 1 + (index - self.count) // recycled

    def body(self, index: int) -> bytes:
        """Body of the ``index``-th request of the endless stream."""
        place, rounds = self._place(index)
        offset, length, ids, _, _ = ENTRY.unpack_from(self._entries, place * ENTRY.size)
        body = os.pread(self._fd, length, offset)
        return rotated(body, ids, rounds) if rounds and ids else body

    def tokens(self, index: int) -> tuple[int, int]:
        """Asked prompt and output length of the ``index``-th request."""
        place, _ = self._place(index)
        _, _, _, prompt, output = ENTRY.unpack_from(self._entries, place * ENTRY.size)
        return int(prompt), int(output)

    def close(self) -> None:
        """Close the files."""
        self._entries.close()
        os.close(self._fd)


def rotated(body: bytes, start: int, rounds: int) -> bytes:
    """The body with its id list, from ``start``, rotated to another beginning; each round to another one."""
    end = len(body) - _BODY_END
    cut = body.find(b",", start + int(rounds * _GOLDEN % 1 * (end - start)), end)
    if cut < 0:
        cut = body.find(b",", start, end)
    if cut < 0:
        return body
    return body[:start] + body[cut + 1 : end] + b"," + body[start:cut] + body[end:]
