"""The request file: bodies serialised before the cell starts, read at send time (standard library only).

Where more requests are sent than were prepared (a long tail, a closed loop on a fast server), the prepared
ones behind `first_recycled` are taken again with the ids of their prompt rotated: same length, same ids, but
another first block, so still no prompt that the server has seen, for about a third as many rounds as a prompt
has ids. The words of a chat are rotated likewise, behind the first one, which has no space before it: so each stays
the token that it is. A chat of a dataset repeats.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import NamedTuple

_ENTRY = struct.Struct("<QIIIII")
_BODY_END = b"]}"  # behind the ids
CHAT_END = b'"}]}'  # behind the words of a chat
_GOLDEN = 0.6180339887498949  # its multiples modulo 1 keep the largest possible distance from each other


class Entry(NamedTuple):
    """Where a request's body is, and what is asked for."""

    offset: int
    length: int
    ids_at: int  # position of the first id (of a chat: word) that may be rotated; 0: none
    prompt_tokens: int
    output_tokens: int
    shared_tokens: int  # at the prompt's beginning, that an earlier prompt began with

    def pack(self) -> bytes:
        """The stored form."""
        return _ENTRY.pack(*self)


ENTRY_FIELDS = Entry._fields


class Entries:
    """Reads the list of requests; beyond its end the ones from ``first_recycled`` on come again."""

    def __init__(self, entries: Path, first_recycled: int) -> None:
        with entries.open("rb") as file:
            self._entries = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.count = len(self._entries) // _ENTRY.size
        self._first_recycled = min(first_recycled, self.count - 1)

    def at(self, index: int) -> tuple[Entry, int]:
        """The ``index``-th request of the endless stream, and how often it came before."""
        place, rounds = index, 0
        if index >= self.count:
            recycled = self.count - self._first_recycled
            place = self._first_recycled + (index - self.count) % recycled
            rounds = 1 + (index - self.count) // recycled
        return Entry._make(_ENTRY.unpack_from(self._entries, place * _ENTRY.size)), rounds

    def close(self) -> None:
        """Close the file."""
        self._entries.close()


class Bodies:
    """Reads the file that `prepare.write_requests` wrote."""

    def __init__(self, bodies: Path, entries: Path, first_recycled: int) -> None:
        self._fd = os.open(bodies, os.O_RDONLY)
        self._entries = Entries(entries, first_recycled)

    def body(self, index: int) -> bytes:
        """Body of the ``index``-th request of the endless stream."""
        entry, rounds = self._entries.at(index)
        body = os.pread(self._fd, entry.length, entry.offset)
        return rotated(body, entry.ids_at, rounds) if rounds and entry.ids_at else body

    def close(self) -> None:
        """Close the files."""
        self._entries.close()
        os.close(self._fd)


def rotated(body: bytes, start: int, rounds: int) -> bytes:
    """The body with its ids or words, from ``start``, rotated to another beginning; each round to another one."""
    behind, between = (CHAT_END, b" ") if body.endswith(CHAT_END) else (_BODY_END, b",")
    end = len(body) - len(behind)
    cut = body.find(between, start + int(rounds * _GOLDEN % 1 * (end - start)), end)
    if cut < 0:
        cut = body.find(between, start, end)
    if cut < 0:
        return body
    return body[:start] + body[cut + 1 : end] + between + body[start:cut] + body[end:]
