"""The worker's real hot loop and the real parser, without sockets: reads in, spool records and a verdict out."""

from __future__ import annotations

import io
import itertools
import select
import socket
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from bench.fuzz.corpus import ASKED, Ending

from goodput.runner.load import events, spool
from goodput.runner.load.arrivals import Arrivals
from goodput.runner.load.bodies import Bodies
from goodput.runner.load.connection import Connection
from goodput.runner.load.exchange import Exchanges
from goodput.runner.load.hot import READ_BYTES, HotLoop
from goodput.runner.load.job import Job, Live
from goodput.runner.load.parse import Parsed, ResponseParser
from goodput.runner.load.pool import Pool
from goodput.runner.load.sse import Event, SseDecoder
from goodput.runner.load.timer import Timer

DESCRIPTOR = 7
Record = tuple[int, int, bytes]  # kind, stamp, bytes


class Heard(NamedTuple):
    """What the worker wrote down, and behind how many bytes it saw the end; None: it did not."""

    records: list[Record]
    end: int | None


class _Socket:
    """Gives one piece per read; None: the connection is broken."""

    piece: bytes | None = b""
    stamp = 0

    def fileno(self) -> int:
        return DESCRIPTOR

    def send(self, data: bytes) -> int:
        return len(data)

    def recvmsg(self, _size: int, _ancillary: int) -> tuple[bytes, list[tuple[int, int, bytes]], int, None]:
        if self.piece is None:
            raise ConnectionResetError(104, "reset")
        self.stamp += 1
        return self.piece, [(1, 37, spool.STAMP.pack(0, self.stamp) + bytes(32))], 0, None


class _Pool:
    """Knows the one connection."""

    def __init__(self) -> None:
        self.by_descriptor: dict[int, Connection] = {}

    def free(self, connection: Connection, _now: int) -> None:
        connection.free()

    def close(self, connection: Connection) -> None:
        connection.free()

    def close_all(self) -> None:
        self.by_descriptor.clear()


class _Nothing:
    """Takes the place of what a read does not touch."""

    descriptor = 3
    opened_ns = closed_ns = None
    cells = memoryview(bytearray(8 * 64)).cast("q")

    def register(self, *_: object) -> None:
        return

    def ended(self, *_: object, **__: object) -> None:
        return

    def poll(self, *_: object) -> list[tuple[int, int]]:
        return []


class Rig:
    """Hears one answer after another."""

    def __init__(self) -> None:
        nothing: Any = _Nothing()
        self._pool, self._file = _Pool(), io.BytesIO()
        self._exchanges = Exchanges(
            0,
            pool=cast("Pool", self._pool),
            arrivals=cast("Arrivals", nothing),
            bodies=cast("Bodies", nothing),
            live=cast("Live", nothing),
            head=b"",
            spool_file=cast("io.BufferedWriter", self._file),
            sent_file=cast("io.BufferedWriter", io.BytesIO()),
        )
        self._loop = HotLoop(
            cast("Job", nothing),
            poll=cast("select.epoll", nothing),
            timer=cast("Timer", nothing),
            pool=cast("Pool", self._pool),
            arrivals=cast("Arrivals", nothing),
            exchanges=self._exchanges,
            live=cast("Live", nothing),
        )

    def _read(self) -> None:
        self._loop._take([(DESCRIPTOR, select.EPOLLIN)], -1)  # noqa: SLF001 (the one place where reads are handled)

    def hear(self, pieces: Sequence[bytes], ending: Ending) -> Heard:
        """The worker reads these pieces until it sees an end, else meets the ending."""
        sock = _Socket()
        connection = Connection(cast("socket.socket", sock), 0)
        connection.connected, connection.request, connection.sent_ns = True, 0, 0
        busy = self._exchanges.busy
        busy[0] = self._pool.by_descriptor[DESCRIPTOR] = connection
        at, end = 0, None
        for piece in pieces:
            sock.piece = piece
            self._read()
            at += len(piece)
            if not busy:
                end = at
                break
        if busy and ending in {"close", "reset"}:
            sock.piece = b"" if ending == "close" else None
            self._read()
        self._exchanges.close_all(stopped=False)
        records = list(_records(self._file.getvalue()))
        self._file.seek(0)
        self._file.truncate()
        return Heard(records, end if records[-1][0] == spool.ENDED else None)


def _records(data: bytes) -> Iterator[Record]:
    at = 0
    while at < len(data):
        _, length, kind, stamp = spool.HEADER.unpack_from(data, at)
        at += spool.HEADER.size
        yield kind, spool.STAMP.unpack(stamp)[1], data[at : at + length]
        at += length


class _CountingSse(SseDecoder):
    """Keeps what it is fed."""

    def __init__(self) -> None:
        super().__init__()
        self.fed: list[bytes] = []

    def feed(self, data: bytes) -> list[Event]:
        self.fed.append(data)
        return super().feed(data)


def parse(records: Sequence[Record]) -> Parsed:
    """As the collector does."""
    return _parse(ResponseParser(ASKED), records)


def parse_slowly(records: Sequence[Record]) -> tuple[Parsed, bytes]:
    """The same with every event read as JSON, and the payload that came out of the framing."""
    lessons, events.LESSONS = events.LESSONS, 0
    try:
        parser, sse = ResponseParser(ASKED), _CountingSse()
    finally:
        events.LESSONS = lessons
    parser._framing._sse = sse  # noqa: SLF001 (to see what comes out of the framing)
    return _parse(parser, records), b"".join(sse.fed)


def _parse(parser: ResponseParser, records: Sequence[Record]) -> Parsed:
    for kind, stamp, body in records[:-1]:
        parser.read(body, stamp, kernel=kind == spool.READ_KERNEL)
    kind, stamp, body = records[-1]
    return parser.finish(kind, stamp, body)


def pieces_of(data: bytes, places: Sequence[int]) -> list[bytes]:
    """The reads that begin at these places; none is longer than a read can be."""
    edges = sorted({0, *places, *range(0, len(data), READ_BYTES), len(data)})
    return [data[start:stop] for start, stop in itertools.pairwise(edges)]
