"""A small S3 server whose refusals a test chooses: what a bucket's policy, an outage or an old store would do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

Mode = Literal["ok", "denied", "no-bucket", "unavailable", "overwrites", "not-implemented"]
BUCKET = "bench"
ACCESS_KEY, SECRET_KEY = "AKIATESTONLY", "very-secret-test-key"
_REFUSALS = {
    "denied": (403, "AccessDenied"),
    "no-bucket": (404, "NoSuchBucket"),
    "unavailable": (503, "SlowDown"),
}


class S3:
    """Objects by key, in memory. ``mode`` may be changed while it serves."""

    def __init__(self) -> None:
        self.mode: Mode = "ok"
        self.objects: dict[str, bytes] = {}
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"s3": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "NO_PROXY": "127.0.0.1"}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    s3: S3
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if not self._refused():
            self._put(body)

    def _put(self, body: bytes) -> None:
        with self.s3.lock:
            conditional = self.headers["If-None-Match"] == "*"
            there = self._key in self.s3.objects and self.s3.mode != "overwrites"
            if conditional and self.s3.mode == "not-implemented":
                self._error(501, "NotImplemented")
            elif conditional and there:
                self._error(412, "PreconditionFailed")
            else:
                self.s3.objects[self._key] = body
                self._answer(200, b"", {"ETag": '"e"'})

    def do_GET(self) -> None:
        if not self._refused():
            self._get()

    def _get(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        with self.s3.lock:
            listing = self._listing(query.get("prefix", [""])[0]) if "list-type" in query else None
            body = self.s3.objects.get(self._key) if listing is None else listing
        if body is None:
            self._error(404, "NoSuchKey")
        else:
            self._answer(200, body, {"ETag": '"e"', "Last-Modified": "Mon, 30 Nov 2026 00:00:00 GMT"})

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}/")

    def _listing(self, prefix: str) -> bytes:
        entry = "<Contents><Key>{}</Key><LastModified>2026-11-30T00:00:00.000Z</LastModified><Size>{}</Size></Contents>"
        found = [entry.format(escape(k), len(v)) for k, v in self.s3.objects.items() if k.startswith(prefix)]
        head = '<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>'
        return (head + "".join(found) + "</ListBucketResult>").encode()

    def _refused(self) -> bool:
        refusal = _REFUSALS.get(self.s3.mode)
        if refusal is not None:
            self._error(*refusal)
        return refusal is not None

    def _error(self, status: int, code: str) -> None:
        # As S3 does: the answer repeats who asked.
        text = f"<Error><Code>{code}</Code><AWSAccessKeyId>{ACCESS_KEY}</AWSAccessKeyId></Error>"
        self._answer(status, text.encode())

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Keep the test's output quiet."""


@pytest.fixture
def s3() -> Iterator[S3]:
    server = S3()
    yield server
    server.close()
