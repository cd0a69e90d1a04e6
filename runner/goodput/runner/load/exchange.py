"""Requests under way in one worker: sending them, and every way they can end (standard library only)."""

from __future__ import annotations

import time
from typing import BinaryIO

from goodput.runner.load import spool
from goodput.runner.load.arrivals import Arrivals
from goodput.runner.load.bodies import Bodies
from goodput.runner.load.connection import HEAD, IDLE, Connection
from goodput.runner.load.job import Live
from goodput.runner.load.pool import CLIENT_LIMITS, Pool


class Exchanges:
    """The requests of one worker.

    Attributes:
        busy: connections that carry a request, by request.
        window_open: window requests that have not ended; None: the window itself has not ended yet.
        retried: requests sent again because a kept-alive connection was dead.
        start_ns: the cell's start, absolute CLOCK_MONOTONIC.
        spool: records that are not written yet: appending to a list is the cheapest way to keep them.
    """

    def __init__(
        self,
        worker: int,
        *,
        pool: Pool,
        arrivals: Arrivals,
        bodies: Bodies,
        live: Live,
        head: bytes,
        spool_file: BinaryIO,
        sent_file: BinaryIO,
    ) -> None:
        self.busy: dict[int, Connection] = {}
        self.window_open: int | None = None
        self.retried = 0
        self.start_ns = 0
        self._pool, self._arrivals, self._bodies = pool, arrivals, bodies
        self._cells, self._row = live.cells, Live.row(worker)
        self._head = head
        self.spool: list[bytes] = []
        self._write, self._write_sent, self._flush_sent = spool_file.write, sent_file.write, sent_file.flush
        self._sent = self._ended = self._failed = 0

    # -- the window --------------------------------------------------------------------------------

    def close_window(self) -> None:
        """The window has ended: count what of it is still under way, for all workers to see."""
        self.window_open = sum(1 for c in self.busy.values() if self._in_window(c.planned_ns))
        self._cells[self._row + Live.WINDOW_OPEN] = self.window_open

    def _in_window(self, planned_ns: int) -> bool:
        opened, closed = self._arrivals.opened_ns, self._arrivals.closed_ns
        return opened is not None and planned_ns >= opened and (closed is None or planned_ns < closed)

    # -- sending -----------------------------------------------------------------------------------

    def send_due(self, now: int) -> None:
        """Send everything whose planned time has come."""
        arrivals = self._arrivals
        while (due := arrivals.due()) is not None and due <= now:
            self._begin(*arrivals.take())

    def _begin(self, index: int, planned: int) -> None:
        now = time.monotonic_ns()
        self._sent += 1
        self._cells[self._row + Live.SENT] = self._sent
        connection = self._pool.take(now)
        if connection is None:
            try:
                connection = self._pool.open(now)
            except OSError as error:
                self._no_connection(index, now, error)
                self._write_sent(spool.SENT.pack(index, planned, -1))
                self._count_end(index, planned, failed=True)
                return
        connection.request, connection.planned_ns = index, planned
        self.busy[index] = connection
        if connection.connected:
            self._transmit(connection)

    def _no_connection(self, index: int, now: int, error: OSError) -> None:
        code = error.errno or 0
        if code in CLIENT_LIMITS:
            self._record(index, spool.NOT_SENT, now, CLIENT_LIMITS[code].encode())
        else:
            self._record(index, spool.BROKEN, now, spool.BROKEN_BODY.pack(code, spool.STAGE_CONNECT))

    def _transmit(self, connection: Connection) -> None:
        body = self._bodies.body(connection.request)
        connection.pending = memoryview(self._head % len(body) + body)
        now = time.monotonic_ns()
        if connection.sent_ns < 0:
            connection.sent_ns = now - self.start_ns
            self._write_sent(spool.SENT.pack(connection.request, connection.planned_ns, connection.sent_ns))
        self._send_more(connection)

    def _send_more(self, connection: Connection) -> None:
        if connection.pending is None:
            return
        try:
            taken = connection.send(connection.pending)
        except BlockingIOError:
            taken = 0
        except OSError as error:
            self.broken(connection, error.errno or 0)
            return
        connection.pending = connection.pending[taken:] if taken < len(connection.pending) else None
        wanted = connection.pending is not None
        if wanted != connection.watching:
            connection.watching = wanted
            self._pool.writable(connection, wanted=wanted)

    def writable(self, connection: Connection) -> None:
        """There is room to write, or connecting has ended."""
        if connection.connected:
            self._send_more(connection)
            return
        code = self._pool.connected(connection)
        if code:
            self.broken(connection, code)
        elif connection.connected and connection.request != IDLE:
            self._transmit(connection)

    # -- ending ------------------------------------------------------------------------------------

    def end(self, connection: Connection) -> None:
        """The response is complete."""
        now = time.monotonic_ns()
        index, planned = connection.request, connection.planned_ns
        failed = connection.status != 200
        if connection.pending is not None:  # answered before it was all sent: nobody knows what follows
            connection.keep = False
        self._record(index, spool.ENDED, now, b"")
        del self.busy[index]
        self._pool.free(connection, now)
        self._count_end(index, planned, failed=failed)

    def closed_by_server(self, connection: Connection) -> None:
        """The server closed the connection, or sent something nobody asked for."""
        if connection.request == IDLE:
            self._pool.close(connection)
        elif _stale(connection):
            self._retry(connection)
        else:
            self._abandon(connection, spool.END_OF_FILE, b"")

    def broken(self, connection: Connection, code: int) -> None:
        """The connection failed with that errno."""
        stage = spool.STAGE_EXCHANGE if connection.connected else spool.STAGE_CONNECT
        if connection.request == IDLE:
            self._pool.close(connection)
        elif _stale(connection):
            self._retry(connection)
        else:
            self._abandon(connection, spool.BROKEN, spool.BROKEN_BODY.pack(code, stage))

    def give_up(self, connection: Connection, reason: bytes) -> None:
        """Close the connection because of what came."""
        self._abandon(connection, spool.CLOSED, reason)

    def close_all(self, *, stopped: bool) -> None:
        """Close what is still open, with the reason in the record."""
        now = time.monotonic_ns()
        for index, connection in self.busy.items():
            reason = b"DrainDeadline" if self._in_window(connection.planned_ns) else b"TailClosed"
            self._record(index, spool.CLOSED, now, b"Stopped" if stopped else reason)
            if connection.sent_ns < 0:
                self._write_sent(spool.SENT.pack(index, connection.planned_ns, -1))
        self.busy.clear()
        self._pool.close_all()
        self.flush()

    def _retry(self, connection: Connection) -> None:
        """A kept-alive connection was closed while the request was under way: a fresh one, once."""
        index, planned, sent = connection.request, connection.planned_ns, connection.sent_ns
        now = time.monotonic_ns()
        self.retried += 1
        self._record(index, spool.RETRIED, now, b"")
        self._pool.close(connection)
        try:
            fresh = self._pool.open(now)
        except OSError as error:
            self._no_connection(index, now, error)
            del self.busy[index]
            self._count_end(index, planned, failed=True)
            return
        fresh.request, fresh.planned_ns, fresh.sent_ns = index, planned, sent
        self.busy[index] = fresh

    def _abandon(self, connection: Connection, kind: int, body: bytes) -> None:
        index, planned = connection.request, connection.planned_ns
        self._record(index, kind, time.monotonic_ns(), body)
        if connection.sent_ns < 0:
            self._write_sent(spool.SENT.pack(index, planned, -1))
        del self.busy[index]
        self._pool.close(connection)
        self._count_end(index, planned, failed=True)

    def _count_end(self, index: int, planned: int, *, failed: bool) -> None:
        self._ended += 1
        self._cells[self._row + Live.ENDED] = self._ended
        if failed:
            self._failed += 1
            self._cells[self._row + Live.FAILED] = self._failed
        self._arrivals.ended(index, time.monotonic_ns() - self.start_ns, failed=failed)
        if self.window_open and self._in_window(planned):
            self.window_open -= 1
            self._cells[self._row + Live.WINDOW_OPEN] = self.window_open

    def received(self, connection: Connection, data: bytes, kernel_stamp: bytes | None) -> None:
        """Record a read."""
        if kernel_stamp is None:
            self._record(connection.request, spool.READ_USER, time.monotonic_ns(), data)
        else:
            self.spool += (
                spool.HEADER.pack(connection.request, len(data), spool.READ_KERNEL, kernel_stamp),
                data,
            )

    def _record(self, request: int, kind: int, stamp: int, body: bytes) -> None:
        self.spool += (spool.header(request, len(body), kind, stamp), body)

    def flush(self) -> None:
        """Write what is in the spool list, after the send log: who sees an answer there finds its request here."""
        self._flush_sent()
        self._write(b"".join(self.spool))
        self.spool.clear()


def _stale(connection: Connection) -> bool:
    """The server may have closed this kept-alive connection before it saw the request: nothing has come."""
    return connection.reused and connection.framing == HEAD and not connection.tail
