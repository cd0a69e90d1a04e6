"""Live view of a running trial: ``GET /status`` and ``GET /metrics``. Nice to have, never relied on."""

from __future__ import annotations

import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from goodput.runner.contract import RunnerStatus, TrialPlan
from goodput.runner.live import LiveMetrics

_log = logging.getLogger(__name__)


class Board:
    """What the runner is doing, written by the trial and read by the HTTP thread."""

    def __init__(self, plan: TrialPlan) -> None:
        self._lock = threading.Lock()
        self._status = RunnerStatus(step="verifying", planned=len(plan.loads))
        self.metrics = LiveMetrics(plan)

    @property
    def status(self) -> RunnerStatus:
        """The present status."""
        with self._lock:
            return self._status

    def update(self, **changes: Any) -> None:
        """Change fields of the status."""
        with self._lock:
            self._status = self._status.model_copy(update=changes)

    def upload_failed(self, message: str) -> None:
        """Show that the store refused."""
        self.metrics.upload_errors.inc()
        self.update(upload_error=message)


class StatusServer:
    """Serves a board from a thread of its own until `close`. Port 0: any free one, see `port`."""

    def __init__(self, board: Board, host: str, port: int) -> None:
        handler = type("Handler", (_Handler,), {"board": board})
        self._server = ThreadingHTTPServer((host, port), handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="status", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    board: Board
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/status":
            self._answer(200, "application/json", self.board.status.model_dump_json().encode())
        elif path == "/metrics":
            self._answer(200, CONTENT_TYPE_LATEST, generate_latest(self.board.metrics.registry))
        elif path == "/healthz":
            self._answer(200, "text/plain", b"ok\n")
        else:
            self._answer(404, "text/plain", b"/status, /metrics, /healthz\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it so
        _log.debug(format, *args)

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
