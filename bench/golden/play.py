"""Plays answers: every step of every stream at its time, every send stamped."""

from __future__ import annotations

import heapq
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator

from bench.golden.script import Action, Gate, Send, Step, Wait
from bench.golden.truth import Row, Truth

SECOND = 1_000_000_000
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST
_ENDS: dict[Action, str] = {"keep": "complete", "close": "closed", "reset": "reset"}


class Peer:
    """One connection, and the answer that is under way on it.

    Attributes:
        arrived: when its last bytes did (CLOCK_MONOTONIC ns), and whether the kernel says so.
        steps: what is left to do; None: no request is under way.
        pending: bytes of a send that the kernel did not take yet, its tokens, and when it began.
        due_ns: when the last wait ended or should have.
        turn: number of the wait that is in the heap; others are out of date.
        close: the client wants the connection closed behind this answer.
    """

    __slots__ = (
        "arrived", "close", "due_ns", "number", "pending", "received", "requests", "row", "sock", "steps", "turn",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock, self.number = sock, number
        self.received = b""
        self.arrived = (0, False)
        self.requests = 0
        self.steps: Iterator[Step] | None = None
        self.row: Row | None = None
        self.pending: tuple[memoryview, int, tuple[int, int]] | None = None
        self.due_ns = self.turn = 0
        self.close = False


class Player:
    """Plays the answers of all connections.

    Args:
        drop: closes a connection, with the word for the truth.
        ready: an answer is complete and its connection stays open.
    """

    def __init__(
        self, poll: select.epoll, truth: Truth, drop: Callable[[Peer, str], None], ready: Callable[[Peer], None]
    ) -> None:
        self._poll, self._truth, self._drop, self._ready = poll, truth, drop, ready
        self._heap: list[tuple[int, int, Peer]] = []
        self._turns = 0
        self._gates: list[tuple[int, Peer]] = []

    def due_ns(self) -> int | None:
        """When there is something to do next."""
        return self._heap[0][0] if self._heap else None

    def play_due(self, now: int) -> None:
        """Go on with everything whose wait has ended."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            _, turn, peer = heapq.heappop(heap)
            if peer.turn == turn:
                self.play(peer)

    def open_gates(self) -> None:
        """Another request has arrived."""
        arrived = len(self._truth.rows)
        ready = [peer for gate, peer in self._gates if gate <= arrived]
        if ready:
            self._gates = [(gate, peer) for gate, peer in self._gates if gate > arrived]
            for peer in ready:
                self.play(peer)

    def play(self, peer: Peer) -> None:
        """Do steps until one takes time."""
        while peer.steps is not None:
            step: Step = next(peer.steps, "keep")
            if isinstance(step, Send):
                if not self._send(peer, step):
                    return
            elif isinstance(step, Wait):
                peer.due_ns = max(peer.due_ns + round(step.seconds * SECOND), time.monotonic_ns())
                self._turns += 1
                peer.turn = self._turns
                heapq.heappush(self._heap, (peer.due_ns, peer.turn, peer))
                return
            elif isinstance(step, Gate):
                if len(self._truth.rows) < step.requests:
                    self._gates.append((step.requests, peer))
                    return
            elif not self._act(peer, step):
                return

    def _send(self, peer: Peer, step: Send) -> bool:
        """Whether the kernel took all of it."""
        before = (time.monotonic_ns(), time.time_ns())
        taken = self._try(peer, step.data)
        if taken is None:
            return False
        if taken == len(step.data):
            assert peer.row is not None
            peer.row.sent(step.tokens, before)
            return True
        peer.pending = (memoryview(step.data)[taken:], step.tokens, before)
        self._poll.modify(peer.sock.fileno(), select.EPOLLIN | select.EPOLLOUT)
        return False

    def writable(self, peer: Peer) -> None:
        """There is room for what is pending."""
        assert peer.pending is not None
        assert peer.row is not None
        left, tokens, before = peer.pending
        taken = self._try(peer, left)
        if taken is None:
            return
        if taken < len(left):
            peer.pending = (left[taken:], tokens, before)
            return
        peer.pending = None
        self._poll.modify(peer.sock.fileno(), select.EPOLLIN)
        peer.row.sent(tokens, before)
        self.play(peer)

    def _try(self, peer: Peer, data: bytes | memoryview) -> int | None:
        """How many bytes the kernel took; None: the client is gone."""
        try:
            return peer.sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self._drop(peer, "client")
            return None

    def _act(self, peer: Peer, action: Action) -> bool:
        """Whether to go on with the next step."""
        row = peer.row
        assert row is not None
        if action == "stale":
            if row.reused:
                self._drop(peer, "stale")
            return not row.reused
        if action == "keep" and not peer.close:
            self._truth.end(row, "complete")
            peer.steps = peer.row = None
            self._ready(peer)
        elif action != "hang":  # that is until the client closes
            if action == "reset":
                peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._drop(peer, _ENDS[action])
        return False
