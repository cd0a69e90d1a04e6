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
from select import EPOLLOUT

from goodput.runner.load.arrivals import Arrivals
from goodput.runner.load.connection import CHUNKED, HEAD, IDLE, LENGTH, SHORT_READ, UNTIL_CLOSED, Connection
from goodput.runner.load.exchange import Exchanges
from goodput.runner.load.http_head import HEAD_END, MAX_HEAD_BYTES, HeadError, parse_head
from goodput.runner.load.job import Job, Live
from goodput.runner.load.pool import Pool
from goodput.runner.load.spool import HEADER, READ_KERNEL
from goodput.runner.load.timer import Timer

READ_BYTES = 16384
ANCILLARY_BYTES = 128
SPOOL_PIECES = 4096  # written at once: some 600 kB
SPIN_NS = 300_000  # how long before a planned time waking is asked for: what waking may take
FLUSH_NS = 1_000_000_000  # what came is in the spool after this time, for whoever follows it
GATHER_SECONDS = 0.0005  # with the kernel's stamps reads can wait: one wake-up then takes many of them
GATHER_STREAMS = 64  # with fewer there is little to gather
LOOK_NS = 50_000_000  # how often idle connections, deadlines and the other workers are looked at
_CR = 13


class HotLoop:
    """Runs one worker's share of a cell and records what comes back.

    Attributes:
        spin_ns: CPU spent waiting for a planned time.
        window_cpu_ns: CPU from the start to the window's end, without the waiting.
        drained: every window request of all workers ended by itself.
        stopped: ended through ``control``.

    Args:
        gather: reads have the kernel's stamps, so they may wait for `GATHER_SECONDS`: fewer wake-ups, each of which
            costs more than a read. Two events of one stream within that time become one, coalesced read, and a
            closed loop's next request is that much later.
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
        gather: bool = False,
    ) -> None:
        self.spin_ns = self.window_cpu_ns = 0
        self.drained = self.stopped = False
        self._job, self._poll, self._pool = job, poll.poll, pool
        self._arrivals, self._exchanges, self._live = arrivals, exchanges, live
        self._looked_ns = -LOOK_NS
        self._flushed_ns = 0
        self._timer = timer
        self._gather = gather
        self._armed_ns = -1
        self._cpu_ns = 0
        self._ended = False
        poll.register(timer.descriptor, select.EPOLLIN | select.EPOLLET)

    def run(self, start_ns: int, control: int) -> None:
        """Run the cell from its absolute start; ``control``, in the epoll, becomes readable to stop it."""
        exchanges, arrivals, clock, poll = self._exchanges, self._arrivals, time.monotonic_ns, self._poll
        gather, busy, sleep, ample = self._gather, exchanges.busy, time.sleep, 4e9 * GATHER_SECONDS
        exchanges.start_ns = start_ns
        self._cpu_ns = time.process_time_ns()
        act_ns = -LOOK_NS
        while not self.stopped:
            now = clock() - start_ns
            if now >= act_ns or arrivals.changed:
                act_ns = self._act(now)
                if self._ended:
                    return
            if gather and len(busy) >= GATHER_STREAMS and act_ns - now > ample:
                sleep(GATHER_SECONDS)
            self._take(poll((act_ns - now) / 1e9) if act_ns > now else self._spin(), control)
            if len(exchanges.spool) >= SPOOL_PIECES:
                exchanges.flush()

    # -- time --------------------------------------------------------------------------------------

    def _act(self, now: int) -> int:
        """Send what is due, look around; returns when to act next, ``now`` where it is worth spinning until then."""
        arrivals = self._arrivals
        arrivals.changed = False
        self._exchanges.send_due(now)
        if arrivals.closed_ns is None:
            arrivals.look(now)
        if now - self._looked_ns >= LOOK_NS:
            self._look(now)
            self._ended = self._finished(now)
        due = arrivals.due()
        look = self._looked_ns + LOOK_NS
        if due is None:
            return look
        wake = due - SPIN_NS
        if wake <= now:
            return now
        if wake != self._armed_ns:
            self._timer.arm(self._exchanges.start_ns + wake)
            self._armed_ns = wake
        return min(wake, look)

    def _spin(self) -> list[tuple[int, int]]:
        before = time.thread_time_ns()
        events = self._poll(0)
        if not events:
            self.spin_ns += time.thread_time_ns() - before
        return events

    def _look(self, now: int) -> None:
        self._looked_ns = now
        closed = self._arrivals.closed_ns
        if closed is not None and now >= closed and self._exchanges.window_open is None:
            self._exchanges.close_window()
            self.window_cpu_ns = time.process_time_ns() - self._cpu_ns - self.spin_ns
        if now - self._flushed_ns >= FLUSH_NS:
            self._flushed_ns = now
            self._exchanges.flush()
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

    def _take(self, events: list[tuple[int, int]], control: int) -> None:
        """Handle what the epoll told; the common read is handled here and nowhere else, for speed."""
        exchanges, by_descriptor = self._exchanges, self._pool.by_descriptor
        append, pack = exchanges.spool.append, HEADER.pack
        for descriptor, event in events:
            connection = by_descriptor.get(descriptor)
            if connection is None:  # the timer, which has done its work, or the sign to stop
                self.stopped = self.stopped or descriptor == control
                continue
            if event & EPOLLOUT:
                exchanges.writable(connection)
                continue
            try:
                data, ancillary, _, _ = connection.recvmsg(READ_BYTES, ANCILLARY_BYTES)
            except OSError as error:
                self._failed(connection, error)
                continue
            if connection.framing == CHUNKED and data and ancillary:
                length = len(data)
                # Of the three timespecs the software stamp is the first: the header takes its 16 bytes.
                append(pack(connection.request, length, READ_KERNEL, ancillary[0][2]))
                append(data)
                if length >= SHORT_READ and data[-4] != _CR:
                    connection.tail = data
                elif connection.terminated(data):
                    exchanges.end(connection)
            else:
                self._other(connection, data, ancillary)

    def _failed(self, connection: Connection, error: OSError) -> None:
        if not isinstance(error, BlockingIOError):
            self._exchanges.broken(connection, error.errno or 0)

    def _other(self, connection: Connection, data: bytes, ancillary: list[tuple[int, int, bytes]]) -> None:
        """All but the common read: no stamp, no answer yet, another framing, the connection's end."""
        if not data or connection.request == IDLE:
            self._exchanges.closed_by_server(connection)
            return
        self._exchanges.received(connection, data, ancillary[0][2] if ancillary else None)
        if connection.framing == CHUNKED:
            if connection.terminated(data):
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
