"""TLS on the hot path: an `ssl.SSLObject` between two buffers, on the same socket and epoll (standard library only).

A `TlsConnection` looks like a plain one: ``recvmsg`` gives decrypted bytes with the kernel's stamp of the read
that completed them, ``send`` takes plain bytes. The loop does not know of TLS, and plain connections do not pay.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import ssl

from goodput.runner.load.connection import Connection

TLS_FAILED = errno.EPROTO  # no handshake, or not TLS what came
TLS_CUT = errno.ECONNABORTED  # the connection ended without a close_notify: nobody knows what is missing
_RECORD_BYTES = 16384  # the largest record's plain text (RFC 8446 §5.1)

Received = tuple[bytes, list[tuple[int, int, bytes]], int, object]  # as `socket.recvmsg` gives


def client_context(ca_file: str | None) -> ssl.SSLContext:
    """TLS 1.2 or newer, certificate and host name verified, HTTP/1.1.

    Args:
        ca_file: PEM; only what it vouches for is trusted. None: the system's store.

    Raises:
        OSError: the file cannot be read, or holds no certificate (`ssl.SSLError`).
    """
    context = ssl.create_default_context(cafile=ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python 3.13 refuses authorities that `openssl req -x509` makes, for extensions that no other client asks for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    return context


class TlsClient:
    """What the connections of a worker share.

    Attributes:
        session: of the latest full exchange, so that the next handshake is a short one.
    """

    def __init__(self, host: str, ca_file: str | None) -> None:
        self._host = host
        self._context = client_context(ca_file)
        self.session: ssl.SSLSession | None = None

    def wrap(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        """The client's end of a connection; sends the host's name, and checks the certificate against it."""
        return self._context.wrap_bio(incoming, outgoing, server_hostname=self._host, session=self.session)


class TlsConnection(Connection):
    """A connection that shakes hands before it is one, and decrypts and encrypts what it carries."""

    __slots__ = ("_client", "_closed", "_incoming", "_outgoing", "_poll", "_read", "_receive", "_shaken", "_tls",
                 "_unsent")  # fmt: skip

    def __init__(self, sock: socket.socket, now_ns: int, client: TlsClient, poll: select.epoll) -> None:
        self._shaken = self._closed = False
        super().__init__(sock, now_ns)
        self._client, self._poll = client, poll
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = client.wrap(self._incoming, self._outgoing)
        self._receive, self._read = sock.recvmsg, self._tls.read
        self._unsent = memoryview(b"")
        self.recvmsg, self.send = self._decrypted, self._encrypted

    def established(self) -> bool:
        """Whether hands are shaken; begins with it where not. Raises `OSError`."""
        if not self._shaken:
            self._shake()
        return self._shaken

    def free(self) -> None:
        """Carry no request. After the first one the session's tickets are here."""
        super().free()
        if self._shaken and not self.reused:
            self._client.session = self._tls.session

    def close(self) -> None:
        """Say goodbye where that can be done at once, and close."""
        if self._shaken:
            self._client.session = self._tls.session
        if self._shaken and not self._unsent:
            with contextlib.suppress(OSError):  # among them: the other side's goodbye is not waited for
                self._tls.unwrap()
            with contextlib.suppress(OSError):
                self.sock.send(self._outgoing.read())
        self.recvmsg, self.send = self.sock.recvmsg, self.sock.send  # no cycle: the worker collects none
        super().close()

    # -- receiving ---------------------------------------------------------------------------------

    def _decrypted(self, size: int, ancillary_size: int) -> Received:
        """One read of the socket. Raises `BlockingIOError` where it yields nothing: that is no event."""
        data, ancillary, flags, address = self._receive(size, ancillary_size)
        if not data:
            if self._closed:
                return data, ancillary, flags, address
            raise OSError(TLS_CUT if self._shaken else errno.ECONNRESET, "closed without a close_notify")
        self._incoming.write(data)
        if not self._shaken:
            self._shake()
            if self._shaken:  # the loop sees what it sees of a plain connection: it can be written to
                self._poll.modify(self.descriptor, select.EPOLLOUT)
            raise BlockingIOError
        plain = self._record()
        while self._incoming.pending and (more := self._record()):
            plain += more
        if plain:
            return plain, ancillary, flags, address
        raise BlockingIOError

    def _record(self) -> bytes:
        """The plain text of the next record; nothing where it is not whole yet, or is a close_notify."""
        try:
            plain = self._read(_RECORD_BYTES)
        except ssl.SSLWantReadError:
            return b""
        except ssl.SSLError as error:
            raise OSError(TLS_FAILED, str(error)) from error
        if not plain:
            self._closed = True
            with contextlib.suppress(OSError):  # the next read is an end of file, whatever the other side does
                self.sock.shutdown(socket.SHUT_RD)
        return plain

    # -- sending -----------------------------------------------------------------------------------

    def _encrypted(self, data: memoryview) -> int:
        """Send plain bytes: all of them, or `BlockingIOError`; then come again with the same."""
        if not self._unsent:
            rest = data
            try:
                while rest:
                    rest = rest[self._tls.write(rest) :]
            except ssl.SSLError as error:
                raise OSError(TLS_FAILED, str(error)) from error
            self._unsent = memoryview(self._outgoing.read())
        self._unsent = self._unsent[self.sock.send(self._unsent) :]
        if self._unsent:
            raise BlockingIOError
        return len(data)

    def _shake(self) -> None:
        """The next step of the handshake."""
        try:
            self._tls.do_handshake()
            self._shaken = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            raise OSError(TLS_FAILED, str(error)) from error
        finally:  # an alert says why
            self._flush()

    def _flush(self) -> None:
        """Send what the handshake has to say: it is less than any socket's buffer."""
        data = self._outgoing.read()
        if data and self.sock.send(data) < len(data):
            raise OSError(TLS_FAILED, "no room for the handshake")
