"""The worker's connections: kept alive, opened ahead of time, given up before the server does it."""

from __future__ import annotations

import contextlib
import errno
import select
import socket

from goodput.runner.load.connection import IDLE, Address, Connection, open_socket
from goodput.runner.load.tls import TlsClient, TlsConnection

IDLE_NS = 3_500_000_000  # uvicorn closes an idle connection after 5 s; a request must not meet that
CONNECT_NS = 10_000_000_000
CLIENT_LIMITS = {  # the client's own want: the request is not sent, and no fault of the server's
    errno.EMFILE: "NoDescriptors",
    errno.ENFILE: "NoDescriptors",
    errno.ENOBUFS: "NoMemory",
    errno.ENOMEM: "NoMemory",
    errno.EADDRNOTAVAIL: "NoPorts",
}


class Pool:
    """All connections of a worker, registered with its epoll.

    Attributes:
        by_descriptor: all open ones.
        highest: most that were open at once.
    """

    def __init__(
        self, poll: select.epoll, where: Address, *, spare: int, kernel_stamps: bool, tls: TlsClient | None = None
    ) -> None:
        self.by_descriptor: dict[int, Connection] = {}
        self.highest = 0
        self._poll = poll
        self._where = where
        self._spare = spare
        self._kernel_stamps = kernel_stamps
        self._tls = tls
        self._idle: list[Connection] = []  # the most recently used last
        self._connecting: set[Connection] = set()

    def open(self, now_ns: int) -> Connection:
        """A new connection, still connecting. Raises `OSError`."""
        sock = open_socket(self._where, kernel_stamps=self._kernel_stamps)
        tls = self._tls
        connection = Connection(sock, now_ns) if tls is None else TlsConnection(sock, now_ns, tls, self._poll)
        self.by_descriptor[connection.descriptor] = connection
        self._connecting.add(connection)
        self._poll.register(connection.descriptor, select.EPOLLOUT)
        self.highest = max(self.highest, len(self.by_descriptor))
        return connection

    def take(self, now_ns: int) -> Connection | None:
        """An established idle connection, or None."""
        while self._idle:
            connection = self._idle.pop()
            if now_ns - connection.since_ns < IDLE_NS:
                return connection
            self.close(connection)
        return None

    def connected(self, connection: Connection) -> int:
        """The connection is writable for the first time: 0, or the errno of why it is not one.

        With TLS it is `connected` only when hands are shaken; then it is writable for the first time once more.
        """
        code = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        try:
            established = code == 0 and connection.established()
        except OSError as error:
            return error.errno or errno.EPROTO
        if code == 0:
            self._poll.modify(connection.descriptor, select.EPOLLIN)
        if established:
            self._connecting.discard(connection)
            connection.connected = True
            if connection.request == IDLE:
                self._idle.append(connection)
        return code

    def writable(self, connection: Connection, *, wanted: bool) -> None:
        """Watch for room to write, or stop watching."""
        self._poll.modify(connection.descriptor, select.EPOLLIN | (select.EPOLLOUT if wanted else 0))

    def free(self, connection: Connection, now_ns: int) -> None:
        """The response is complete: keep the connection if both sides want to."""
        if not connection.keep:
            self.close(connection)
            return
        connection.free()
        connection.reused = True
        connection.since_ns = now_ns
        self._idle.append(connection)

    def close(self, connection: Connection) -> None:
        """Close a connection in whatever state."""
        self.by_descriptor.pop(connection.descriptor, None)
        self._connecting.discard(connection)
        if connection.request == IDLE and connection in self._idle:
            self._idle.remove(connection)
        connection.close()

    def refresh(self, now_ns: int) -> list[Connection]:
        """Give up what idles too long, connect ahead; returns the busy ones whose connecting takes too long."""
        while self._idle and now_ns - self._idle[0].since_ns >= IDLE_NS:
            self.close(self._idle[0])
        late = [c for c in self._connecting if now_ns - c.since_ns >= CONNECT_NS]
        for connection in [c for c in late if c.request == IDLE]:
            self.close(connection)
        ahead = sum(1 for c in self._connecting if c.request == IDLE)
        with contextlib.suppress(OSError):  # the next request meets the same error, and it is recorded there
            for _ in range(self._spare - len(self._idle) - ahead):
                self.open(now_ns)
        return [c for c in late if c.request != IDLE]

    def close_all(self) -> None:
        """Close everything."""
        for connection in list(self.by_descriptor.values()):
            self.close(connection)
