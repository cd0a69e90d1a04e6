"""The hot path: one epoll, own sockets, every read stamped and appended to the spool; nothing is parsed here.

Only the end of a response is looked for, because it frees the connection. Requests are sent at absolute
times: epoll until 2 ms before, then spin. No asyncio: most of a read's cost is the system call itself.
All times are CLOCK_MONOTONIC; ``now`` is in ns from the cell's start unless it says absolute.
"""

from __future__ import annotations

import errno
import select
import struct
import time
from typing import BinaryIO

from goodput.runner.load import spool
from goodput.runner.load.arrivals import Arrivals
from goodput.runner.load.bodies import Bodies
from goodput.runner.load.connection import CHUNKED, HEAD, IDLE, LENGTH, SHORT_READ, UNTIL_CLOSED, Connection
from goodput.runner.load.http_head import HEAD_END, MAX_HEAD_BYTES, HeadError, parse_head
from goodput.runner.load.job import Job, Live
from goodput.runner.load.pool import CLIENT_LIMITS, Pool

READ_BYTES = 65536
ANCILLARY_BYTES = 128
SPIN_NS = 2_000_000
LOOK_NS = 50_000_000  # how often idle connections, deadlines and the other workers are looked at
_MS = 1_000_000
_TIMESPEC = struct.Struct("qq")
_BLANK_LINE = b"\r\n\r\n"


class HotLoop:
    """Sends one worker's share of a cell and records what comes back.

    Attributes:
        reads: system calls that returned bytes of a response.
        spin_ns: CPU spent waiting for a planned time.
        drained: every window request of this worker ended by itself.
        stopped: ended by `stop`.
    """

    def __init__(
        self,
        job: Job,
        worker: int,
        *,
        poll: select.epoll,
        pool: Pool,
        arrivals: Arrivals,
        bodies: Bodies,
        live: Live,
        head: bytes,
        spool_file: BinaryIO,
        sent_file: BinaryIO,
        clock_offset_ns: int,
    ) -> None:
        self.reads = self.spin_ns = self.retried = self.window_cpu_ns = 0
        self.drained = self.stopped = False
        self._job, self._worker = job, worker
        self._poll, self._pool, self._arrivals, self._bodies = poll, pool, arrivals, bodies
        self._live, self._cells, self._row = live, live.cells, Live.row(worker)
        self._head = head
        self._write, self._write_sent = spool_file.write, sent_file.write
        self._offset_ns = clock_offset_ns
        self._start_ns = 0
        self._busy: dict[int, Connection] = {}  # by request
        self._sent = self._ended = 0
        self._window_open: int | None = None  # None: the window has not ended yet
        self._looked_ns = -LOOK_NS

    def stop(self) -> None:
        """End at the next turn; open requests are closed."""
        self.stopped = True

    def run(self, start_ns: int, control: int) -> None:
        """Run the cell. ``control`` is a descriptor whose readability means stop.

        Args:
            start_ns: the cell's start, absolute.
            control: registered with the epoll by the caller.
        """
        self._start_ns = start_ns
        cpu_ns = time.process_time_ns()
        poll, by_descriptor, clock = self._poll.poll, self._pool.by_descriptor, time.monotonic_ns
        thread_time = time.thread_time_ns
        while not self.stopped:
            now = clock() - start_ns
            self._send_due(now)
            if self._arrivals.closed_ns is None:
                self._arrivals.look(now)
            if now - self._looked_ns >= LOOK_NS:
                self._look(now, cpu_ns)
                if self._finished(now):
                    return
            milliseconds = self._patience(clock() - start_ns)
            if milliseconds:
                events = poll(milliseconds / 1000)
            else:
                before = thread_time()
                events = poll(0)
                if not events:
                    self.spin_ns += thread_time() - before
            for descriptor, event in events:
                connection = by_descriptor.get(descriptor)
                if connection is None:
                    self.stopped = self.stopped or descriptor == control
                elif event & select.EPOLLOUT:
                    self._writable(connection)
                else:
                    self._readable(connection)

    def close_open(self) -> None:
        """Close what is still open, with the reason in the record."""
        now = time.monotonic_ns()
        for connection in list(self._busy.values()):
            reason = b"DrainDeadline" if self._in_window(connection) else b"TailClosed"
            self._record(connection.request, spool.CLOSED, now, b"Stopped" if self.stopped else reason)
        self._busy.clear()
        self._pool.close_all()

    # -- time ------------------------------------------------------------------------------------

    def _patience(self, now: int) -> int:
        """Whole milliseconds that may be slept; 0: spin."""
        due = self._arrivals.due()
        limit = self._looked_ns + LOOK_NS
        if due is not None and due - SPIN_NS < limit:
            return max(0, (due - SPIN_NS - now) // _MS)
        return max(1, (limit - now) // _MS)

    def _look(self, now: int, cpu_ns: int) -> None:
        self._looked_ns = now
        closed = self._arrivals.closed_ns
        if closed is not None and now >= closed and self._window_open is None:
            self._window_open = sum(1 for c in self._busy.values() if self._in_window(c))
            self._cells[self._row + Live.WINDOW_OPEN] = self._window_open
            self.window_cpu_ns = time.process_time_ns() - cpu_ns - self.spin_ns
        for connection in self._pool.refresh(time.monotonic_ns()):
            self._broken(connection, errno.ETIMEDOUT)

    def _finished(self, now: int) -> bool:
        if self._window_open is None:
            limit = self._job.lead_in_limit_ns
            return self._arrivals.opened_ns is None and now >= limit
        if self._live.drained():
            self.drained = True
            return True
        closed = self._arrivals.closed_ns
        return closed is not None and now >= closed + self._job.drain_ns

    def _in_window(self, connection: Connection) -> bool:
        opened, closed = self._arrivals.opened_ns, self._arrivals.closed_ns
        return (
            opened is not None
            and connection.planned_ns >= opened
            and (closed is None or connection.planned_ns < closed)
        )

    # -- sending ---------------------------------------------------------------------------------

    def _send_due(self, now: int) -> None:
        arrivals = self._arrivals
        while (due := arrivals.due()) is not None and due <= now:
            index, planned = arrivals.take()
            self._begin(index, planned)

    def _begin(self, index: int, planned: int) -> None:
        now = time.monotonic_ns()
        self._sent += 1
        self._cells[self._row + Live.SENT] = self._sent
        connection = self._pool.take(now)
        if connection is None:
            try:
                connection = self._pool.open(now)
            except OSError as error:
                self._refused(index, planned, now, error)
                return
        connection.request, connection.planned_ns = index, planned
        self._busy[index] = connection
        if connection.connected:
            self._transmit(connection)

    def _refused(self, index: int, planned: int, now: int, error: OSError) -> None:
        code = error.errno or 0
        if code in CLIENT_LIMITS:
            self._record(index, spool.NOT_SENT, now, CLIENT_LIMITS[code].encode())
        else:
            self._record(index, spool.BROKEN, now, spool.BROKEN_BODY.pack(code, spool.STAGE_CONNECT))
        self._write_sent(spool.SENT.pack(index, planned, -1))
        self._count_end(index, planned, failed=True)

    def _transmit(self, connection: Connection) -> None:
        body = self._bodies.body(connection.request)
        message = self._head % len(body) + body
        now = time.monotonic_ns()
        if connection.sent_ns < 0:
            connection.sent_ns = now - self._start_ns
            self._write_sent(spool.SENT.pack(connection.request, connection.planned_ns, connection.sent_ns))
        connection.pending = memoryview(message)
        self._send_more(connection)

    def _send_more(self, connection: Connection) -> None:
        if connection.pending is None:
            return
        try:
            taken = connection.sock.send(connection.pending)
        except BlockingIOError:
            taken = 0
        except OSError as error:
            self._broken(connection, error.errno or 0)
            return
        connection.pending = connection.pending[taken:] if taken < len(connection.pending) else None
        wanted = connection.pending is not None
        if wanted != connection.watching:
            connection.watching = wanted
            self._pool.writable(connection, wanted=wanted)

    def _writable(self, connection: Connection) -> None:
        if connection.connected:
            self._send_more(connection)
            return
        code = self._pool.connected(connection)
        if code:
            self._broken(connection, code)
        elif connection.request != IDLE:
            self._transmit(connection)

    # -- receiving -------------------------------------------------------------------------------

    def _readable(self, connection: Connection) -> None:
        try:
            data, ancillary, _, _ = connection.recvmsg(READ_BYTES, ANCILLARY_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._broken(connection, error.errno or 0)
            return
        if not data or connection.request == IDLE:
            self._closed_by_server(connection)
            return
        if ancillary:
            seconds, nanoseconds = _TIMESPEC.unpack_from(ancillary[0][2])
            stamp = seconds * 1_000_000_000 + nanoseconds - self._offset_ns
            kind = spool.READ_KERNEL
        else:
            stamp, kind = time.monotonic_ns(), spool.READ_USER
        self._write(spool.HEADER.pack(connection.request, len(data), kind, stamp))
        self._write(data)
        self.reads += 1
        if connection.framing == CHUNKED:
            if len(data) >= SHORT_READ and data[-4:] != _BLANK_LINE:
                connection.tail = data
            elif connection.terminated(data):
                self._end(connection)
        else:
            self._other(connection, data)

    def _other(self, connection: Connection, data: bytes) -> None:
        if connection.framing == HEAD:
            self._head_bytes(connection, data)
        elif connection.framing == LENGTH:
            self._length(connection, len(data))

    def _head_bytes(self, connection: Connection, data: bytes) -> None:
        connection.tail += data
        while connection.framing == HEAD:
            block, found, rest = connection.tail.partition(HEAD_END)
            if not found:
                if len(block) > MAX_HEAD_BYTES:
                    self._give_up(connection, b"MalformedHttp")
                return
            try:
                head = parse_head(block)
            except HeadError:
                self._give_up(connection, b"MalformedHttp")
                return
            connection.tail = rest
            if head.interim:
                continue
            connection.status, connection.keep = head.status, head.keep
            connection.framing = CHUNKED if head.chunked else LENGTH if head.length is not None else UNTIL_CLOSED
            connection.left = head.length or 0
        rest = connection.tail
        if connection.framing == CHUNKED:
            connection.tail = HEAD_END
            if connection.terminated(rest):
                self._end(connection)
        elif connection.framing == LENGTH:
            self._length(connection, len(rest))

    def _length(self, connection: Connection, received: int) -> None:
        connection.left -= received
        if connection.left <= 0:
            connection.keep = connection.keep and connection.left == 0
            self._end(connection)

    # -- ending ----------------------------------------------------------------------------------

    def _end(self, connection: Connection) -> None:
        now = time.monotonic_ns()
        index, planned = connection.request, connection.planned_ns
        failed = connection.status != 200
        if connection.pending is not None:  # answered before it was all sent: nobody knows what follows
            connection.keep = False
        self._record(index, spool.ENDED, now, b"")
        del self._busy[index]
        self._pool.free(connection, now)
        self._count_end(index, planned, failed=failed)

    def _closed_by_server(self, connection: Connection) -> None:
        if connection.request == IDLE:
            self._pool.close(connection)
        elif connection.reused and connection.framing == HEAD and not connection.tail:
            self._retry(connection)
        else:
            self._abandon(connection, spool.END_OF_FILE, b"")

    def _broken(self, connection: Connection, code: int) -> None:
        if connection.request == IDLE:
            self._pool.close(connection)
            return
        stage = spool.STAGE_EXCHANGE if connection.connected else spool.STAGE_CONNECT
        if connection.reused and connection.framing == HEAD and not connection.tail:
            self._retry(connection)
        else:
            self._abandon(connection, spool.BROKEN, spool.BROKEN_BODY.pack(code, stage))

    def _retry(self, connection: Connection) -> None:
        """The server closed a kept-alive connection while the request was under way: a fresh one, once."""
        index, planned, sent = connection.request, connection.planned_ns, connection.sent_ns
        now = time.monotonic_ns()
        self.retried += 1
        self._record(index, spool.RETRIED, now, b"")
        self._pool.close(connection)
        try:
            fresh = self._pool.open(now)
        except OSError as error:
            code = spool.BROKEN_BODY.pack(error.errno or 0, spool.STAGE_CONNECT)
            self._record(index, spool.BROKEN, now, code)
            del self._busy[index]
            self._count_end(index, planned, failed=True)
            return
        fresh.request, fresh.planned_ns, fresh.sent_ns = index, planned, sent
        self._busy[index] = fresh

    def _give_up(self, connection: Connection, reason: bytes) -> None:
        self._abandon(connection, spool.CLOSED, reason)

    def _abandon(self, connection: Connection, kind: int, body: bytes) -> None:
        index, planned = connection.request, connection.planned_ns
        self._record(index, kind, time.monotonic_ns(), body)
        if connection.sent_ns < 0:
            self._write_sent(spool.SENT.pack(index, planned, -1))
        del self._busy[index]
        self._pool.close(connection)
        self._count_end(index, planned, failed=True)

    def _count_end(self, index: int, planned: int, *, failed: bool) -> None:
        now = time.monotonic_ns() - self._start_ns
        self._ended += 1
        self._cells[self._row + Live.ENDED] = self._ended
        self._arrivals.ended(index, now, failed=failed)
        if self._window_open:
            opened, closed = self._arrivals.opened_ns, self._arrivals.closed_ns
            if opened is not None and closed is not None and opened <= planned < closed:
                self._window_open -= 1
                self._cells[self._row + Live.WINDOW_OPEN] = self._window_open

    def _record(self, request: int, kind: int, stamp: int, body: bytes) -> None:
        self._write(spool.HEADER.pack(request, len(body), kind, stamp))
        if body:
            self._write(body)
