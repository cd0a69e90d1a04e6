"""The hot path: one epoll, own sockets, every read stamped and appended to the spool; nothing is parsed here.

Only the end of a response is looked for, because it frees the connection. Requests are sent at absolute
times: epoll until 2 ms before, then spin. No asyncio: most of a read's cost is the system call itself.
``now`` is in ns from the cell's start, stamps are absolute CLOCK_MONOTONIC.
"""

from __future__ import annotations

import errno
import select
import struct
import time
from typing import BinaryIO

from goodput.runner.load import spool
from goodput.runner.load.arrivals import Arrivals
from goodput.runner.load.connection import CHUNKED, HEAD, IDLE, LENGTH, SHORT_READ, UNTIL_CLOSED, Connection
from goodput.runner.load.exchange import Exchanges
from goodput.runner.load.http_head import HEAD_END, MAX_HEAD_BYTES, HeadError, parse_head
from goodput.runner.load.job import Job, Live
from goodput.runner.load.pool import Pool

READ_BYTES = 65536
ANCILLARY_BYTES = 128
SPIN_NS = 2_000_000
LOOK_NS = 50_000_000  # how often idle connections, deadlines and the other workers are looked at
_MS = 1_000_000
_TIMESPEC = struct.Struct("qq")
_BLANK_LINE = b"\r\n\r\n"


class HotLoop:
    """Runs one worker's share of a cell and records what comes back.

    Attributes:
        reads: system calls that returned bytes of a response.
        spin_ns: CPU spent waiting for a planned time.
        window_cpu_ns: CPU from the start to the window's end, without the waiting.
        drained: every window request of all workers ended by itself.
        stopped: ended through ``control``.
    """

    def __init__(
        self,
        job: Job,
        *,
        poll: select.epoll,
        pool: Pool,
        arrivals: Arrivals,
        exchanges: Exchanges,
        live: Live,
        spool_file: BinaryIO,
        clock_offset_ns: int,
    ) -> None:
        self.reads = self.spin_ns = self.window_cpu_ns = 0
        self.drained = self.stopped = False
        self._job, self._poll, self._pool = job, poll, pool
        self._arrivals, self._exchanges, self._live = arrivals, exchanges, live
        self._write = spool_file.write
        self._offset_ns = clock_offset_ns  # CLOCK_REALTIME − CLOCK_MONOTONIC
        self._looked_ns = -LOOK_NS

    def run(self, start_ns: int, control: int) -> None:
        """Run the cell from its absolute start; ``control``, in the epoll, becomes readable to stop it."""
        exchanges, arrivals, thread_time = self._exchanges, self._arrivals, time.thread_time_ns
        poll, by_descriptor, clock = self._poll.poll, self._pool.by_descriptor, time.monotonic_ns
        exchanges.start_ns = start_ns
        cpu_ns = time.process_time_ns()
        while not self.stopped:
            now = clock() - start_ns
            exchanges.send_due(now)
            if arrivals.closed_ns is None:
                arrivals.look(now)
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
                    exchanges.writable(connection)
                else:
                    self._readable(connection)

    # -- time --------------------------------------------------------------------------------------

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
        if closed is not None and now >= closed and self._exchanges.window_open is None:
            self._exchanges.close_window()
            self.window_cpu_ns = time.process_time_ns() - cpu_ns - self.spin_ns
        for connection in self._pool.refresh(time.monotonic_ns()):
            self._exchanges.broken(connection, errno.ETIMEDOUT)

    def _finished(self, now: int) -> bool:
        if self._exchanges.window_open is None:
            return self._arrivals.opened_ns is None and now >= self._job.lead_in_limit_ns
        if self._live.drained():
            self.drained = True
            return True
        closed = self._arrivals.closed_ns
        return closed is not None and now >= closed + self._job.drain_ns

    # -- receiving ---------------------------------------------------------------------------------

    def _readable(self, connection: Connection) -> None:
        try:
            data, ancillary, _, _ = connection.recvmsg(READ_BYTES, ANCILLARY_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._exchanges.broken(connection, error.errno or 0)
            return
        if not data or connection.request == IDLE:
            self._exchanges.closed_by_server(connection)
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
                self._exchanges.end(connection)
        elif connection.framing == HEAD:
            self._head(connection, data)
        elif connection.framing == LENGTH:
            self._length(connection, len(data))

    def _head(self, connection: Connection, data: bytes) -> None:
        connection.tail += data
        while connection.framing == HEAD:
            block, found, rest = connection.tail.partition(HEAD_END)
            if not found:
                if len(block) > MAX_HEAD_BYTES:
                    self._exchanges.give_up(connection, b"MalformedHttp")
                return
            try:
                head = parse_head(block)
            except HeadError:
                self._exchanges.give_up(connection, b"MalformedHttp")
                return
            connection.tail = rest
            if head.interim:
                continue
            connection.status, connection.keep = head.status, head.keep
            known = LENGTH if head.length is not None else UNTIL_CLOSED
            connection.framing = CHUNKED if head.chunked else known
            connection.left = head.length or 0
        self._body(connection, connection.tail)

    def _body(self, connection: Connection, rest: bytes) -> None:
        """What came with the head."""
        if connection.framing == CHUNKED:
            connection.tail = HEAD_END
            if connection.terminated(rest):
                self._exchanges.end(connection)
        elif connection.framing == LENGTH:
            self._length(connection, len(rest))

    def _length(self, connection: Connection, received: int) -> None:
        connection.left -= received
        if connection.left <= 0:
            connection.keep = connection.keep and connection.left == 0
            self._exchanges.end(connection)
