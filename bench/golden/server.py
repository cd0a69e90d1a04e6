"""The golden server's loop: one process, one epoll: connections, requests, and the stall of the whole server."""

from __future__ import annotations

import select
import socket
import time

from bench.golden import routes
from bench.golden.play import SECOND, Peer, Player
from bench.golden.request import Request, number, take_request
from bench.golden.script import Script, Stream
from bench.golden.stamps import ANCILLARY_BYTES, Stamps
from bench.golden.stream import steps_for
from bench.golden.truth import Row, Truth

READ_BYTES = 1 << 16


class Server:
    """Serves a script until ``stop`` (a descriptor) becomes readable."""

    def __init__(self, script: Script, port: int, stop: int | None = None) -> None:
        self.truth = Truth()
        self._script, self._stop = script, stop
        self._listener = socket.create_server(("127.0.0.1", port), backlog=4096)
        self._listener.setblocking(False)
        self._stamps = Stamps(self._listener)
        self.port = int(self._listener.getsockname()[1])
        self._poll = select.epoll()
        self._poll.register(self._listener.fileno(), select.EPOLLIN)
        if stop is not None:
            self._poll.register(stop, select.EPOLLIN)
        self._peers: dict[int, Peer] = {}
        self._player = Player(self._poll, self.truth, self._drop, self._next)
        self._stall_ns: int | None = None

    def run(self) -> None:
        """Serve."""
        peers, player = self._peers, self._player
        while True:
            for descriptor, events in self._poll.poll(self._wait_seconds()):
                peer = peers.get(descriptor)
                if peer is None:
                    if descriptor == self._stop:
                        return
                    if descriptor == self._listener.fileno():
                        self._accept()
                elif events & select.EPOLLOUT and peer.pending is not None:
                    player.writable(peer)
                else:
                    self._receive(peer)
            now = time.monotonic_ns()
            if self._stall_ns is not None and now >= self._stall_ns:
                self._stand_still(now)
            player.play_due(now)

    def _wait_seconds(self) -> float:
        dues = [due for due in (self._player.due_ns(), self._stall_ns) if due is not None]
        return max(0.0, (min(dues) - time.monotonic_ns()) / SECOND) if dues else -1.0

    def _stand_still(self, now: int) -> None:
        stall, self._stall_ns = self._script.stall, None
        assert stall is not None
        self.truth.stalled_ns.append(now)
        time.sleep(stall.seconds)
        self.truth.stalled_ns.append(time.monotonic_ns())

    # -- connections and requests ------------------------------------------------------------------

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.truth.connections += 1
            self.truth.open += 1
            self._peers[sock.fileno()] = Peer(sock, self.truth.connections)
            self._poll.register(sock.fileno(), select.EPOLLIN)

    def _receive(self, peer: Peer) -> None:
        try:
            data, ancillary, _, _ = peer.sock.recvmsg(READ_BYTES, ANCILLARY_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        if data:
            peer.arrived = self._stamps.of(ancillary)
            peer.received += data
            self._next(peer)
        else:
            self._drop(peer, "client")

    def _next(self, peer: Peer) -> None:
        """Begin with the next request that has arrived, if the one before has been answered."""
        while peer.steps is None and (taken := take_request(peer.received)) is not None:
            request, peer.received = taken
            if request.method == "POST" and request.path.endswith("/completions"):
                self._begin(peer, request)
                return
            try:
                peer.sock.settimeout(10)  # nobody measures these
                peer.sock.sendall(routes.answer(request, self.truth))
                peer.sock.setblocking(False)
            except OSError:
                self._drop(peer, "client")
                return
            if request.close:
                self._drop(peer, "complete")
                return

    def _begin(self, peer: Peer, request: Request) -> None:
        script, document = self._script, request.document()
        followed = request.path.startswith(routes.ELSEWHERE)  # a redirect that should not be followed
        asked = None if followed else number(script.match, request, document, self.truth.ordered)
        self.truth.ordered += not followed
        case = script.case(asked)
        row = Row(case, asked, peer.number, peer.arrived, reused=peer.requests > 0)
        row.request = request if script.keep_requests else None
        self.truth.add(row)
        if len(self.truth.rows) == 1 and script.stall is not None:
            self._stall_ns = row.arrived_ns + round(script.stall.at * SECOND)
        peer.requests += 1
        peer.row, peer.close, peer.due_ns = row, request.close, row.arrived_ns
        plan = case.plan
        peer.steps = iter(steps_for(plan, request, document) if isinstance(plan, Stream) else plan)
        self._player.open_gates()
        self._player.play(peer)

    def _drop(self, peer: Peer, how: str) -> None:
        """Close the connection."""
        if peer.row is not None:
            self.truth.end(peer.row, how)
        peer.steps = peer.row = peer.pending = None
        peer.turn = -1
        if self._peers.pop(peer.sock.fileno(), None) is not None:
            self.truth.open -= 1
            peer.sock.close()
