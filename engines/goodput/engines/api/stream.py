"""A streamed answer on its connection: the hot path of the server.

Chunks are framed here and handed to the transport directly, so that a token costs no task switch. While
the client reads too slowly, its tokens are kept and later sent together, as vLLM merges them.
"""

import asyncio

from goodput.engines.api.engine import Request, Texts
from goodput.engines.api.sse import EventWriter

#: Bytes waiting in a connection's buffer above which tokens are held back and merged.
_HIGH_WATER = 64 * 1024


class StreamSink:
    """Writes a request's tokens to its connection.

    Attributes:
        done: resolves to True after the last token, to False when the engine gave the request up.
    """

    __slots__ = ("_held", "_opened", "_texts", "_transport", "_writer", "done")

    def __init__(self, transport: asyncio.WriteTransport, writer: EventWriter, texts: Texts) -> None:
        self._transport = transport
        self._writer = writer
        self._texts = texts
        self._held: list[int] = []
        self._opened = False
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def token(self, request: Request) -> None:
        """Sends the newest token, or holds it back while the client lags."""
        token, total, reason = request.output_token_ids[-1], request.num_output_tokens, request.finish_reason
        if self._transport.is_closing():
            self._finish(completed=False)
            return
        if reason is None and self._transport.get_write_buffer_size() > _HIGH_WATER:
            self._held.append(token)
            return
        tokens = (*self._held, token)
        self._held.clear()
        data = self._writer.tokens(self._texts.of(tokens), total, reason, tokens)
        data = b"%x\r\n%b\r\n" % (len(data), data)
        if not self._opened:
            self._opened = True
            opening = self._writer.opening()
            if opening:
                data = b"%x\r\n%b\r\n" % (len(opening), opening) + data
        self._transport.write(data)
        if reason is not None:
            self._finish(completed=True)

    def aborted(self) -> None:
        """The engine gave up."""
        self._finish(completed=False)

    def _finish(self, *, completed: bool) -> None:
        if not self.done.done():
            self.done.set_result(completed)


class WholeSink:
    """Waits for an answer that is not streamed.

    Attributes:
        done: as `StreamSink.done`.
    """

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def token(self, request: Request) -> None:
        """Notes the end."""
        if request.finish_reason is not None and not self.done.done():
            self.done.set_result(True)

    def aborted(self) -> None:
        """The engine gave up."""
        if not self.done.done():
            self.done.set_result(False)
