"""What runners say of themselves while they run: ``GET /status`` by pod IP. Nice to have, never relied on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import httpx
from pydantic import ValidationError

from goodput.operator.cluster import bodies, names
from goodput.operator.cluster.bodies import Body
from goodput.operator.cluster.observe import Children
from goodput.runner.contract import RunnerStatus

POLL_SECONDS: Final = 1.0
TIMEOUT_SECONDS: Final = 2.0


class Live:
    """One poller per running runner pod; ``wake`` is called when one says something new."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.found: dict[str, RunnerStatus] = {}  # by pod UID
        self._wake = wake
        self._pollers: dict[str, asyncio.Task[None]] = {}

    def follow(self, children: Children) -> None:
        """Poll the runners that run, and no others."""
        running = {bodies.uid(pod): pod for pod in children.pods if _runs(pod)}
        for uid in self._pollers.keys() - running.keys():
            self._pollers.pop(uid).cancel()
            self.found.pop(uid, None)
        for uid in running.keys() - self._pollers.keys():
            self._pollers[uid] = asyncio.create_task(self._poll(uid, _url(running[uid])))

    async def close(self) -> None:
        """Stop polling."""
        tasks = list(self._pollers.values())
        self._pollers.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _poll(self, uid: str, url: str) -> None:
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as client:
            while True:
                status = await _ask(client, url)
                if status is not None and status != self.found.get(uid):
                    self.found[uid] = status
                    self._wake()
                await asyncio.sleep(POLL_SECONDS)


async def _ask(client: httpx.AsyncClient, url: str) -> RunnerStatus | None:
    try:
        answer = await client.get(url)
        return RunnerStatus.model_validate_json(answer.content)
    except (httpx.HTTPError, ValidationError):
        return None


def _runs(pod: Body) -> bool:
    if bodies.labels(pod).get(names.ROLE) != names.RUNNER or not bodies.status(pod).get("podIP"):
        return False
    return "running" in (bodies.container_status(pod, names.RUNNER).get("state") or {})


def _url(pod: Body) -> str:
    address = str(bodies.status(pod)["podIP"])
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{names.RUNNER_PORT}/status"
