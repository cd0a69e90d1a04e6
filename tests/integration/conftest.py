"""TLS for tests: an authority of their own, and a front that speaks TLS for a plain server."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


@dataclass(frozen=True)
class Certificate:
    """Files of a server: its certificate and its key."""

    cert: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """Issues certificates. ``ca`` is what a client has to trust."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    @classmethod
    def create(cls, folder: Path) -> Authority:
        folder.mkdir()
        _openssl(folder, "req", "-x509", *_NEW_KEY, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority")
        return cls(folder)

    def issue(self, name: str, *, host: str = "IP:127.0.0.1", days: int = 2) -> Certificate:
        """A certificate for ``host``; one for 0 days has expired at once."""
        (self.folder / "extensions").write_text(f"subjectAltName={host}\n")
        request = [*_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}"]
        _openssl(self.folder, "req", *request)
        signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "extensions"]
        files = ["-in", f"{name}.csr", "-out", f"{name}.pem"]
        _openssl(self.folder, "x509", "-req", *files, *signing, "-days", str(days))
        return Certificate(self.folder / f"{name}.pem", self.folder / f"{name}.key")


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


class Front:
    """Speaks TLS for a plain server on this machine.

    Args:
        port: of the plain server.
        cut: end connections without a close_notify.
        newest: highest version that is spoken.
    """

    def __init__(
        self, port: int, certificate: Certificate, *, cut: bool, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ) -> None:
        self._backend, self._cut = port, cut
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate.cert, certificate.key)
        self._context.maximum_version = newest
        self._context.set_alpn_protocols(["h2", "http/1.1"])
        self._context.sni_callback = lambda _sock, name, _context: self.names.append(name)
        self.names: list[str | None] = []
        self.protocols: list[str | None] = []
        self.resumed = 0
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._listener.settimeout(0.1)
        self.port = int(self._listener.getsockname()[1])
        self.url = f"https://127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                sock, _ = self._listener.accept()
            except TimeoutError:
                continue
            self._threads.append(threading.Thread(target=self._serve, args=(sock,)))
            self._threads[-1].start()

    def _serve(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(20)
        try:
            client = self._context.wrap_socket(sock, server_side=True, suppress_ragged_eofs=False)
        except OSError:  # the client does not like the certificate
            sock.close()
            return
        self.protocols.append(client.selected_alpn_protocol())
        self.resumed += bool(client.session_reused)
        with client, socket.create_connection(("127.0.0.1", self._backend)) as backend:
            backend.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                self._pump(client, backend)
                if not self._cut:
                    client.unwrap()
            except ConnectionResetError:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:  # the client went away
                return

    def _pump(self, client: ssl.SSLSocket, backend: socket.socket) -> None:
        """Both ways until one of them ends."""
        while not self._closing.is_set():
            readable = [client] if client.pending() else select.select([client, backend], [], [], 0.1)[0]
            for source, target in ((client, backend), (backend, client)):
                if source in readable:
                    data = source.recv(65536)
                    if not data:
                        return
                    target.sendall(data)


Fronts = Callable[..., Front]


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that clients are told to trust."""
    return Authority.create(tmp_path_factory.mktemp("tls") / "authority")


@pytest.fixture(scope="session")
def certificate(authority: Authority) -> Certificate:
    """A good certificate for 127.0.0.1."""
    return authority.issue("good")


@pytest.fixture
def fronts(certificate: Certificate) -> Iterator[Fronts]:
    """Start fronts: (port of a plain server); they end with the test."""
    started: list[Front] = []

    def start(
        port: int,
        *,
        shown: Certificate = certificate,
        cut: bool = False,
        newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    ) -> Front:
        started.append(Front(port, shown, cut=cut, newest=newest))
        return started[-1]

    yield start
    for front in started:
        front.close()
