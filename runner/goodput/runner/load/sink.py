"""A server for measuring the client: ``python -m goodput.runner.load.sink TICK_SECONDS [CPU]`` (standard library only).

It streams as an OpenAI-compatible server does, one event per stream and tick, on all streams at once like an
engine step. It says its port on standard output and ends when its standard input ends.
"""

from __future__ import annotations

import os
import re
import select
import socket
import sys
import time

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_TOKENS = re.compile(rb'"max_(?:completion_)?tokens":(\d+)')
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
_EVENT = (
    'data: {"id":"cmpl-0123456789abcdef","object":"text_completion","created":0,"model":"sink","choices":'
    '[{"index":0,"text":" word","logprobs":null,"finish_reason":%s,"stop_reason":null}],'
    '"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}}\n\n'
)
_USAGE = (
    'data: {"id":"cmpl-0123456789abcdef","object":"text_completion","created":0,"model":"sink","choices":[],'
    '"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}}\n\n'
)


class Stream:
    """One connection: bytes of a request that is coming in, or tokens left to send."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.received = b""
        self.asked = 0
        self.sent = 0

    def feed(self, data: bytes) -> bool:
        """Take bytes of a request; whether it is complete."""
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not found or length is None or len(body) < int(length[1]):
            return False
        tokens = _TOKENS.search(body)
        self.received, self.sent = b"", 0
        self.asked = int(tokens[1]) if tokens else 16
        return True

    def next_bytes(self) -> bytes:
        """The next event, framed; with the last one the end of the response."""
        self.sent += 1
        last = self.sent == self.asked
        counts = (1, 1 + self.sent, self.sent)
        data = chunk(_EVENT % ('"length"' if last else "null", *counts))
        if self.sent == 1:
            data = _HEAD + data
        if last:
            data += chunk(_USAGE % counts) + chunk("data: [DONE]\n\n") + b"0\r\n\r\n"
        return data


def chunk(text: str) -> bytes:
    """One HTTP chunk."""
    payload = text.encode()
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def serve(tick_seconds: float) -> None:
    """Serve until standard input ends."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listener.setblocking(False)
    poll = select.epoll()
    poll.register(listener.fileno(), select.EPOLLIN)
    poll.register(0, select.EPOLLIN)
    os.write(1, b"%d\n" % listener.getsockname()[1])
    streams: dict[int, Stream] = {}
    active: dict[int, Stream] = {}
    tick = time.monotonic()
    while True:
        for descriptor, _ in poll.poll(max(0.0, tick - time.monotonic()) if active else -1):
            if descriptor == 0:
                return
            if descriptor == listener.fileno():
                _accept(listener, poll, streams)
            else:
                _receive(descriptor, streams, active)
        if active and time.monotonic() >= tick:
            tick = max(tick + tick_seconds, time.monotonic())
            _step(active)


def _accept(listener: socket.socket, poll: select.epoll, streams: dict[int, Stream]) -> None:
    try:
        sock, _ = listener.accept()
    except BlockingIOError:
        return
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    streams[sock.fileno()] = Stream(sock)
    poll.register(sock.fileno(), select.EPOLLIN)


def _receive(descriptor: int, streams: dict[int, Stream], active: dict[int, Stream]) -> None:
    stream = streams[descriptor]
    try:
        data = stream.sock.recv(1 << 20)
    except OSError:
        data = b""
    if not data:
        stream.sock.close()
        del streams[descriptor]
        active.pop(descriptor, None)
    elif stream.feed(data):
        active[descriptor] = stream


def _step(active: dict[int, Stream]) -> None:
    for descriptor, stream in list(active.items()):
        try:
            stream.sock.send(stream.next_bytes())
        except OSError:
            del active[descriptor]
            continue
        if stream.sent == stream.asked:
            del active[descriptor]


if __name__ == "__main__":
    if len(sys.argv) > 2:
        os.sched_setaffinity(0, {int(sys.argv[2])})
    serve(float(sys.argv[1]))
