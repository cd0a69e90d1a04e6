"""The two files a worker appends to while the cell runs (standard library only).

Spool: all that came from the network, in order: a `HEADER` and its bytes. Send log: one `SENT` per request
that was due. Both are read after the cell, or by another process, never by the worker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from goodput.runner.load.errors import SpoolError

HEADER = struct.Struct("<IIB16s")  # request, bytes that follow, kind, stamp
STAMP = struct.Struct("qq")  # as the kernel has it: s and ns of CLOCK_REALTIME; else 0 and ns of CLOCK_MONOTONIC
_ROW = struct.Struct("<IIBqq")  # both at once, for reading (a little-endian machine)
SENT = struct.Struct("<Iqq")  # request, planned ns, sent ns (both from the cell's start; sent -1: never)

# Kinds of spool records.
READ_KERNEL = 0  # bytes with the kernel's receive stamp
READ_USER = 1  # bytes, stamped after the system call
END_OF_FILE = 2  # the server closed the connection
BROKEN = 3  # the connection broke: 4 bytes errno, 1 byte stage
ENDED = 4  # the response is complete as far as the worker can see
CLOSED = 5  # the worker closed it: the reason as text
RETRIED = 6  # a kept-alive connection was dead before any answer: everything so far is void, sent again
NOT_SENT = 7  # the client could not send it: the reason as text

STAGE_CONNECT = 0
STAGE_EXCHANGE = 1
BROKEN_BODY = struct.Struct("<iB")

_READ_BYTES = 1 << 18  # what its records become stays in the processor's cache
MAX_RECORD_BYTES = 1 << 20

Record = tuple[int, int, int, bytes]  # request, kind, stamp (CLOCK_MONOTONIC ns), bytes


def header(request: int, length: int, kind: int, monotonic_ns: int) -> bytes:
    """The header of a record that has no kernel stamp."""
    return HEADER.pack(request, length, kind, STAMP.pack(0, monotonic_ns))


def read_spool(path: Path, clock_offset_ns: int) -> Iterator[Record]:
    """All records in order. A torn last record (the worker was killed) ends the file.

    Args:
        path: the spool.
        clock_offset_ns: CLOCK_REALTIME − CLOCK_MONOTONIC when the cell started, to place the kernel's stamps.
    """
    with SpoolTail(path, clock_offset_ns) as tail:
        while records := tail.block():
            yield from records


class SpoolTail:
    """Reads a spool in blocks, also while it grows: what is torn is taken up with the next block.

    Args: see `read_spool`.
    """

    def __init__(self, path: Path, clock_offset_ns: int) -> None:
        self._path, self._offset_ns = path, clock_offset_ns
        self._file = path.open("rb")
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def block(self) -> list[Record]:
        """Some of the whole records that follow; none where there is no more, for now."""
        records: list[Record] = []
        while not records:
            block = self._file.read(_READ_BYTES)
            if not block:
                break
            records = self._records(self._rest + block if self._rest else block)
        return records

    def _records(self, data: bytes) -> list[Record]:
        size, unpack, offset = _ROW.size, _ROW.unpack_from, self._offset_ns
        records: list[Record] = []
        at, end = 0, len(data)
        while at + size <= end:
            request, length, kind, seconds, nanoseconds = unpack(data, at)
            if length > MAX_RECORD_BYTES:
                raise SpoolError(f"{self._path.name}: a record of {length} bytes cannot be right")
            stop = at + size + length
            if stop > end:
                break
            if kind == READ_KERNEL:
                nanoseconds += seconds * 1_000_000_000 - offset
            records.append((request, kind, nanoseconds, data[at + size : stop]))
            at = stop
        self._rest = data[at:]
        return records
