"""All sweeps of one operator: what the watch says goes to the right driver. Knows nothing of kopf."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from goodput.operator.cluster import bodies, names
from goodput.operator.cluster.bodies import Body
from goodput.operator.cluster.driver import RETRY_SECONDS, Driver, is_active
from goodput.operator.cluster.errors import ClusterError
from goodput.operator.cluster.kit import Kit
from goodput.operator.cluster.names import Owner

_log = logging.getLogger(__name__)

COALESCE_SECONDS: Final = 0.02
"""One change in the cluster shows as several events: they are looked at together."""
JANITOR_SECONDS: Final = 60.0


class Desk:
    """Wakes drivers, keeps the sweeps' bodies, and cleans up after sweeps that have ended."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._sweeps: dict[str, Body] = {}  # by UID
        self._wakes: dict[str, asyncio.Event] = {}
        self._ended = asyncio.Event()

    def child(self, kind: str, body: Body, *, gone: bool = False) -> None:
        """The watch showed a child: ``gone`` for the last time."""
        self._kit.metrics.event()
        sweep = bodies.labels(body).get(names.SWEEP_UID, "")
        if gone:
            self._kit.cache.drop(kind, sweep, bodies.uid(body))
        elif not self._kit.cache.put(kind, body):
            return
        self._wake(sweep)

    def sweep(self, body: Body, *, gone: bool = False) -> None:
        """The watch showed a sweep."""
        self._kit.metrics.event()
        uid, meta = bodies.uid(body), bodies.meta(body)
        phase = None if gone else str(bodies.status(body).get("phase") or "Pending")
        self._kit.metrics.phase(str(meta["namespace"]), str(meta["name"]), phase)
        if gone:
            self._sweeps.pop(uid, None)
            self._kit.cache.forget(uid)
            return
        self._sweeps[uid] = bodies.slim(body)
        self._wake(uid)
        if not _wanted(body):
            self._ended.set()

    async def drive(self, owner: Owner, first: Body) -> None:
        """Drive a sweep until cancelled: it has ended, is being deleted, or the operator stops."""
        wake = self._wakes.setdefault(owner.uid, asyncio.Event())
        driver = Driver(owner, self._kit, wake.set)
        failures = 0
        try:
            while True:
                wake.clear()  # before looking: a wake during the pass is kept
                try:
                    seconds = await driver.look(self._sweeps.get(owner.uid, first))
                    failures = 0
                except Exception as error:  # noqa: BLE001  the driver of a sweep must not end by accident
                    seconds = RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)]
                    failures += 1
                    _tell(owner, error)
                await _wait(wake, seconds)
        finally:
            self._wakes.pop(owner.uid, None)
            await driver.close()

    async def clean(self) -> None:
        """Clean up after sweeps that have ended, for as long as the operator runs. They have no finalizer any more."""
        while True:
            self._ended.clear()
            pause = JANITOR_SECONDS
            for body in list(self._sweeps.values()):
                if not _wanted(body) and not bodies.deleting(body):
                    pause = min(pause, await self._clean(body))
            await _wait(self._ended, pause)

    async def _clean(self, body: Body) -> float:
        meta = bodies.meta(body)
        owner = Owner(str(meta["namespace"]), str(meta["name"]), bodies.uid(body))
        if not self._kit.cache.children(owner.uid).any:
            return JANITOR_SECONDS
        driver = Driver(owner, self._kit, lambda: None)
        try:
            return max(1.0, await driver.look(body))
        except Exception as error:  # noqa: BLE001  one sweep that cannot be cleaned must not hold up the others
            _tell(owner, error)
            return JANITOR_SECONDS
        finally:
            await driver.close()

    def _wake(self, sweep: str) -> None:
        event = self._wakes.get(sweep)
        if event is not None:
            event.set()


def wanted(status: object, generation: int) -> bool:
    """Whether a sweep with this status needs a driver."""
    return is_active(status if isinstance(status, dict) else {}, generation)


def _wanted(body: Body) -> bool:
    return is_active(bodies.status(body), int(bodies.meta(body).get("generation", 1)))


def _tell(owner: Owner, error: Exception) -> None:
    where = f"{owner.namespace}/{owner.name}"
    if isinstance(error, ClusterError):
        _log.warning("%s: %s", where, error)
    else:
        _log.error("%s: a look at the sweep failed", where, exc_info=error)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
    await asyncio.sleep(COALESCE_SECONDS)
