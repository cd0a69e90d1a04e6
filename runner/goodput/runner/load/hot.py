"""The hot path: one epoll, own sockets, every read stamped and appended to the spool; nothing is parsed here.

Only the end of a response is looked for, because it frees the connection. Requests are sent at absolute
times: a timerfd wakes the epoll a little before, then it spins. No asyncio: most of a read's cost is the
system call itself.
``now`` is in ns from the cell's start, stamps are absolute CLOCK_MONOTONIC.
"""

from __future__ import annotations

import errno
import select
import time
from typing import BinaryIO

from goodput.runner.load import spool
from goodput.runner.load.arrivals import Arrivals
from goodput.runner.load.connection import CHUNKED, HEAD, IDLE, LENGTH, SHORT_READ, UNTIL_CLOSED, Connection
from goodput.runner.load.exchange import Exchanges
from goodput.runner.load.http_head import HEAD_END, MAX_HEAD_BYTES, HeadError, parse_head
from goodput.runner.load.job import Job, Live
from goodput.runner.load.pool import Pool
from goodput.runner.load.timer import Timer

READ_BYTES = 16384
ANCILLARY_BYTES = 128
SPIN_NS = 300_000  # how long before a planned time waking is asked for: what waking may take
LOOK_NS = 50_000_000  # how often idle connections, deadlines and the other workers are looked at
_LOOK_SECONDS = LOOK_NS / 1e9
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
        timer: Timer,
        pool: Pool,
        arrivals: Arrivals,
        exchanges: Exchanges,
        live: Live,
        spool_file: BinaryIO,
    ) -> None:
        self.reads = self.spin_ns = self.window_cpu_ns = 0
        self.drained = self.stopped = False
        self._job, self._poll, self._pool = job, poll, pool
        self._arrivals, self._exchanges, self._live = arrivals, exchanges, live
        self._write = spool_file.write
        self._looked_ns = -LOOK_NS
        self._timer = timer
        self._armed_ns = -1
        poll.register(timer.descriptor, select.EPOLLIN | select.EPOLLET)

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
            if self._waits(clock() - start_ns):
                events = poll(_LOOK_SECONDS)
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

    def _waits(self, now: int) -> bool:
        """Whether there is time to sleep; then the timer is set for the next request."""
        due = self._arrivals.due()
        if due is None:
            return True
        wake = due - SPIN_NS
        if now >= wake:
            return False
        if wake != self._armed_ns:
            self._timer.arm(self._exchanges.start_ns + wake)
            self._armed_ns = wake
        return True

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
        write = self._write
        if ancillary:  # three timespecs, the software stamp first: the header takes its 16 bytes
            write(spool.HEADER.pack(connection.request, len(data), spool.READ_KERNEL, ancillary[0][2]))
        else:
            write(spool.header(connection.request, len(data), spool.READ_USER, time.monotonic_ns()))
        write(data)
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
