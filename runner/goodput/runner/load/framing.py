"""The bytes of one response, in pieces of any size: head, transfer coding, events; what is wrong with them (pure)."""

from __future__ import annotations

from goodput.runner.load import spool
from goodput.runner.load.chunks import ChunkDecoder
from goodput.runner.load.http_head import HEAD_END, MAX_HEAD_BYTES, Head, HeadError, parse_head
from goodput.runner.load.sse import Event, SseDecoder

EVENT_STREAM = "text/event-stream"
PLAIN_ENCODINGS = frozenset({"", "identity"})


class Framing:
    """Takes a response apart.

    Attributes:
        head: once it is there.
        error: MalformedHttp or MalformedChunk; nothing behind it is read.
        extra: there are bytes behind the length that the head says.
    """

    __slots__ = ("_chunks", "_foreign", "_held", "_left", "_sse", "error", "extra", "head")

    def __init__(self) -> None:
        self.head: Head | None = None
        self.error: str | None = None
        self.extra = False
        self._held = b""  # the beginning of the head
        self._chunks: ChunkDecoder | None = None
        self._left: int | None = None  # bytes of the body, where the head says how many
        self._sse = SseDecoder()
        self._foreign = False  # a refusal, a page or a packed body, which is not read as a stream

    @property
    def between(self) -> bool:
        """The next byte begins a chunk and an event."""
        chunks = self._chunks
        return chunks is not None and chunks.between and chunks.error is None and self._sse.between

    @property
    def endless(self) -> bool:
        """Only the end of the connection ends the body, or there is no head yet."""
        return self._chunks is None and self._left is None

    @property
    def junk(self) -> bool:
        """There were lines that are no field of an event."""
        return bool(self._sse.junk)

    def feed(self, data: bytes) -> list[Event]:
        """The events that ``data`` completes, up to an error."""
        if self.error is not None:
            return []
        try:
            payload = self._payload(data)
        except HeadError:
            self.error = "MalformedHttp"
            return []
        return self._sse.feed(payload) if payload and not self._foreign else []

    def whole(self, kind: int) -> bool:
        """Whether the body came to its end as HTTP has it; ``kind``: of the spool record that ended the exchange."""
        if self._chunks is not None:
            return self._chunks.complete
        return kind == spool.END_OF_FILE if self._left is None else self._left == 0

    def flush(self, kind: int) -> list[Event]:
        """The unfinished event at the end of a whole stream."""
        readable = self.head is not None and not self._foreign and self.whole(kind)
        return self._sse.flush() if readable else []

    def _payload(self, data: bytes) -> bytes:
        if self.head is None:
            data = self._take_head(data)
        if self._chunks is not None:
            data = self._chunks.feed(data)
            if self._chunks.error is not None:
                self.error = "MalformedChunk"
        elif self._left is not None:
            self.extra = self.extra or len(data) > self._left
            data = data[: self._left]
            self._left -= len(data)
        return data

    def _take_head(self, data: bytes) -> bytes:
        """What follows the head; nothing while it is not complete."""
        self._held += data
        while True:
            block, found, rest = self._held.partition(HEAD_END)
            if not found:
                if len(block) > MAX_HEAD_BYTES:
                    raise HeadError("a head without end")
                return b""
            head = parse_head(block)
            self._held = rest
            if head.interim:
                continue
            self._held = b""
            self.head = head
            self._chunks = ChunkDecoder() if head.chunked else None
            self._left = head.length
            self._foreign = head.status != 200 or head.encoding not in PLAIN_ENCODINGS
            self._foreign = self._foreign or head.content_type != EVENT_STREAM
            return rest
