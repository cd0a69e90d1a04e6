"""One connection of the worker, and opening it (standard library only; Linux)."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

SO_TIMESTAMPING = 37
RECEIVE_STAMPS = 1 << 3 | 1 << 4  # SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE
STAMPS_SECONDS = 0.5  # until the kernel has switched them on: on a busy machine longer than a hundred reads
IDLE = -1

# How the end of a response is found.
HEAD, CHUNKED, LENGTH, UNTIL_CLOSED = 0, 1, 2, 3

SHORT_READ = 64  # below this the end may be spread over several reads
_TAIL = 512
_TERMINATOR = re.compile(rb"\r\n0+[ \t]*(?:;[^\r\n]*)?\r\n(?:[^\r\n]+\r\n)*\r\n\Z")


class Address(NamedTuple):
    """Where to connect."""

    family: int
    address: tuple[object, ...]


class Connection:
    """A non-blocking TCP connection and the request it carries, if any.

    Attributes:
        request: index of the request, or `IDLE`.
        tail: the last bytes of the response so far (of its head: all of them).
        pending: bytes of the request that the kernel did not take yet.
        watching: the epoll tells when there is room for them.
        recvmsg, send: of the socket, or what a `tls.TlsConnection` has in their place.
    """

    __slots__ = (
        "connected",
        "descriptor",
        "framing",
        "keep",
        "left",
        "pending",
        "planned_ns",
        "recvmsg",
        "request",
        "reused",
        "send",
        "sent_ns",
        "since_ns",
        "sock",
        "status",
        "tail",
        "watching",
    )

    def __init__(self, sock: socket.socket, now_ns: int) -> None:
        self.sock = sock
        self.recvmsg: Callable[[int, int], tuple[bytes, list[tuple[int, int, bytes]], int, object]] = sock.recvmsg
        self.send: Callable[[memoryview], int] = sock.send
        self.descriptor = sock.fileno()
        self.connected = False
        self.reused = False
        self.since_ns = now_ns
        self.free()

    def established(self) -> bool:
        """Whether a TCP connection is all that it takes. Raises `OSError` where it is not and cannot be more."""
        return True

    def close(self) -> None:
        """Close the socket, which also takes it out of the epoll."""
        self.sock.close()

    def free(self) -> None:
        """Carry no request."""
        self.request = IDLE
        self.watching = False
        self.planned_ns = 0
        self.sent_ns = -1
        self.pending: memoryview | None = None
        self.framing = HEAD
        self.left = 0
        self.status = 0
        self.keep = False
        self.tail = b""

    def terminated(self, data: bytes) -> bool:
        """Whether a chunked response ends with ``data``; to be called when it is short or ends with a blank line."""
        joined = self.tail + data
        self.tail = joined[-_TAIL:]
        return joined.endswith(b"\r\n\r\n") and _TERMINATOR.search(joined) is not None


def resolve(host: str, port: int) -> Address:
    """The first address of the host. Raises `OSError`."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return Address(family, address)


def open_socket(where: Address, *, kernel_stamps: bool) -> socket.socket:
    """A non-blocking socket that begins to connect.

    Raises:
        OSError: no socket can be had, or the address is refused at once.
    """
    sock = socket.socket(where.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if kernel_stamps:
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RECEIVE_STAMPS)
        with contextlib.suppress(BlockingIOError):  # in progress
            sock.connect(where.address)
    except OSError:
        sock.close()
        raise
    return sock


def kernel_stamps_work() -> bool:
    """Whether this machine stamps received TCP segments. Also switches stamping on, which takes the kernel a moment."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with socket.create_connection(server.getsockname(), 1) as near, server.accept()[0] as far:
            near.settimeout(1)
            try:
                near.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, RECEIVE_STAMPS)
            except OSError:
                return False
            deadline = time.monotonic() + STAMPS_SECONDS
            while time.monotonic() < deadline:
                far.send(b"x")
                if near.recvmsg(1, 128)[1]:
                    return True
                time.sleep(0.001)  # the kernel switches them on in a thread of its own, which needs a core
    return False
