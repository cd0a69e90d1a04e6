"""/metrics and /healthz on one port, from a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

_log = logging.getLogger(__name__)

BEAT_SECONDS: Final = 5.0
DEAD_SECONDS: Final = 60.0
"""An event loop that has not run for so long is stuck: the kubelet is to restart the operator."""


class Heart:
    """Beats on the event loop; a thread can ask whether it still does."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    async def beat(self) -> None:
        """Beat until cancelled."""
        while True:
            self._last = time.monotonic()
            await asyncio.sleep(BEAT_SECONDS)

    @property
    def alive(self) -> bool:
        """The event loop ran within `DEAD_SECONDS`."""
        return time.monotonic() - self._last < DEAD_SECONDS


class HealthServer:
    """Serves until `close`. Port 0: any free one, see `port`."""

    def __init__(self, registry: CollectorRegistry, alive: Callable[[], bool], port: int) -> None:
        handler = type("Handler", (_Handler,), {"registry": registry, "alive": staticmethod(alive)})
        self._server = ThreadingHTTPServer(("", port), handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    registry: CollectorRegistry
    alive: Callable[[], bool]
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(200, CONTENT_TYPE_LATEST, generate_latest(self.registry))
        elif path == "/healthz":
            alive = self.alive()
            self._answer(200 if alive else 503, "text/plain", b"ok\n" if alive else b"the event loop is stuck\n")
        else:
            self._answer(404, "text/plain", b"/metrics, /healthz\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class names it so
        _log.debug(format, *args)

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
