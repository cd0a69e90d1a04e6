"""The head of an HTTP/1.x response: what the worker needs to find its end and the parser to judge it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

HEAD_END = b"\r\n\r\n"
MAX_HEAD_BYTES = 64 << 10
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n]*)?\Z")
_NO_BODY = (204, 304)


class HeadError(ValueError):
    """Not an HTTP/1.x response head."""


@dataclass(frozen=True, slots=True)
class Head:
    """A parsed head.

    Attributes:
        chunked: the body is framed in chunks, whatever ``length`` says.
        length: Content-Length; None: until the connection closes, unless chunked.
        keep: the connection may be used again.
    """

    status: int
    chunked: bool
    length: int | None
    keep: bool
    content_type: str
    encoding: str

    @property
    def interim(self) -> bool:
        """A 1xx answer: the real one follows."""
        return self.status < 200


@lru_cache(maxsize=64)
def parse_head(block: bytes) -> Head:
    """Parse the bytes before the blank line; a server's answers of one second have the same, so it is remembered.

    Raises:
        HeadError: where a peer could be misunderstood (no status line, two lengths, a header without a name).
    """
    first, *lines = block.split(b"\r\n")
    match = _STATUS.match(first)
    if match is None:
        raise HeadError("no HTTP/1.x status line")
    headers: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon or not name or name != name.strip():
            raise HeadError("a malformed header line")
        if name == b"content-length" and headers.get(name, value.strip()) != value.strip():
            raise HeadError("two different content lengths")
        headers[name] = value.strip()
    return _head(int(match[2]), match[1] == b"1", headers)


def _head(status: int, http11: bool, headers: dict[bytes, bytes]) -> Head:
    chunked = headers.get(b"transfer-encoding", b"").lower().split(b",")[-1].strip() == b"chunked"
    length: int | None = None
    if b"content-length" in headers and not chunked:
        if not headers[b"content-length"].isdigit():
            raise HeadError("content length is no number")
        length = int(headers[b"content-length"])
    if status < 200 or status in _NO_BODY:
        length, chunked = 0, False
    connection = headers.get(b"connection", b"").lower()
    keep = b"close" not in connection if http11 else b"keep-alive" in connection
    return Head(
        status=status,
        chunked=chunked,
        length=length,
        keep=keep and (chunked or length is not None),
        content_type=headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1"),
        encoding=headers.get(b"content-encoding", b"").decode("latin-1").lower(),
    )
