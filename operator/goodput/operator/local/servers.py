"""The server of a trial as a process: starting until /health answers 200, and why it ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import httpx

from goodput.operator.classify import classify_log, last_line
from goodput.operator.local import layout
from goodput.operator.local.errors import StartError
from goodput.operator.local.gpuwait import GpuWait
from goodput.operator.local.layout import TrialFolder
from goodput.operator.local.ports import HOST, Port
from goodput.operator.local.processes import Child
from goodput.operator.observed import Failure, Server
from goodput.operator.spec.command import SHUTDOWN_SECONDS

HEALTH_SECONDS = 1.0
STOP_SECONDS = SHUTDOWN_SECONDS + 10.0
"""From SIGTERM to SIGKILL: the server drains for so long, and needs a moment to end what it started."""


@dataclass
class LocalServer:
    """``child`` None: it waits for its GPUs, and ``launch`` starts it; or it could not be started: ``failure``."""

    folder: TrialFolder
    port: Port
    since: float
    child: Child | None
    client: httpx.Client
    failure: Failure | None = None
    ready: float | None = None
    dropped: bool = False
    wait: GpuWait | None = None
    launch: Callable[[], Child] | None = None

    @property
    def url(self) -> str:
        """Of the API and of /metrics."""
        return f"http://{HOST}:{self.port.number}"

    def look(self) -> Server | None:
        """The server now; None once it was told to go and nothing is left of it."""
        waiting = self._waiting()
        if waiting is not None:
            return waiting
        if self.child is None or self.child.ended():
            return None if self.dropped else self._ended()
        if self.child.stopping:
            return self._server("stopping")
        if self.ready is None and healthy(self.client, self.url):
            return self._answered(self.child)
        return self._server("starting" if self.ready is None else "ready")

    def stop(self) -> None:
        """Let it go."""
        self.dropped = True
        self.port.release()
        if self.child is not None:
            self.child.stop(STOP_SECONDS)

    def _waiting(self) -> Server | None:
        """Start it once the memory of its GPUs is free, or give it up; None: there is nothing to wait for."""
        if self.wait is None or self.launch is None or self.dropped or self.failure is not None:
            return None
        busy = self.wait.busy()
        if busy is not None and not self.wait.expired:
            return replace(self._server("pending"), scheduled=None, waiting=busy)
        launch, self.launch = self.launch, None
        if busy is not None:
            self.failure = busy
            return None
        self.since = time.time()
        try:
            self.child = launch()
        except (StartError, OSError) as error:
            self.failure = Failure("ContainerConfigError", str(error))
        return None

    def _answered(self, child: Child) -> Server:
        """It is ready, unless something else answers at its port: then it could only fail, later or unnoticed."""
        stranger = self.port.stranger(child.process.pid)
        if stranger is not None:
            self.failure = Failure("PortInUse", f"port {self.port.number} was answered by {stranger}")
            child.kill()
            return self._ended()
        self.ready = time.time()
        self.port.release()
        return self._server("ready")

    def _ended(self) -> Server:
        if self.failure is None and self.child is not None:
            log = layout.read_text(self.folder.server_log)
            self.failure = classify_log(log) or Failure("ServerGone", f"the server {self.child.how}: {last_line(log)}")
        return self._server("ended")

    def _server(self, state: str) -> Server:
        return Server(
            state=state,  # type: ignore[arg-type]  # one of the literals above
            since=self.since,
            failure=self.failure,
            scheduled=self.since,
            running=self.since if self.child is not None else None,
            ready=self.ready,
            url=self.url,
        )


def healthy(client: httpx.Client, url: str) -> bool:
    """Whether the server says that it is ready."""
    try:
        return client.get(f"{url}/health", timeout=HEALTH_SECONDS).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
