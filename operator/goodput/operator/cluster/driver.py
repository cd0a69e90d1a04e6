"""One active sweep: look, plan, act, write the status. Knows nothing of kopf.

Nothing is kept that a restarted operator could not see again: the cache, texts and refusals are filled anew.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from goodput.operator import status as statuses_of
from goodput.operator.actions import Action
from goodput.operator.cluster import bodies, statuses
from goodput.operator.cluster.bodies import Body
from goodput.operator.cluster.cache import SELECTORS
from goodput.operator.cluster.errors import ClusterError, ObjectGoneError
from goodput.operator.cluster.execute import Executor
from goodput.operator.cluster.kit import Kit
from goodput.operator.cluster.live import Live
from goodput.operator.cluster.names import SWEEP_UID, Owner
from goodput.operator.cluster.observe import Children, Texts, observe
from goodput.operator.cluster.observe_task import unsaved_answer
from goodput.operator.cluster.refusals import Refusals
from goodput.operator.cluster.texts import Reader
from goodput.operator.observed import Failure, Observed
from goodput.operator.plan import plan
from goodput.operator.plan.phase import TERMINAL
from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep

_log = logging.getLogger(__name__)

RETRY_SECONDS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses after looks in which something failed, or that asked for the same again."""
VERIFY_SECONDS: Final = 60.0
"""How often the watch is checked against a list: a watch that was cut may have missed an end."""


class Driver:
    """Drives one sweep. `look` is called by one task at a time."""

    def __init__(self, owner: Owner, kit: Kit, wake: Callable[[], None]) -> None:
        self.owner = owner
        self._api = kit.api
        self._cache = kit.cache
        self._metrics = kit.metrics
        self._executor = Executor(kit)
        self._reader = Reader(kit.api)
        self._refusals = Refusals()
        self._live = Live(wake)
        self._sweep: Sweep | None = None
        self._written: tuple[int, Mapping[str, Any]] = (0, {})  # resource version and status
        self._last: tuple[Action, ...] = ()
        self._idle_looks = 0
        self._verified = time.monotonic()

    async def look(self, document: Body) -> float:
        """One pass. Seconds until the next look is due at the latest."""
        begun = time.monotonic()
        try:
            seconds = await self._look(document)
        except Exception:
            self._metrics.looked(time.monotonic() - begun, failed=True)
            raise
        self._metrics.looked(time.monotonic() - begun, failed=False)
        return seconds

    async def close(self) -> None:
        """Stop what runs beside the looks."""
        self._metrics.forget(self.owner.namespace, self.owner.name)
        await self._live.close()

    async def _look(self, document: Body) -> float:
        now, status = time.time(), self._status(document)
        try:
            sweep = await self._resolved(document)
        except SpecError as error:
            failure = Failure("SpecRefused", str(error))
            generation = int(bodies.meta(document).get("generation", 1))
            await self._write(status, statuses_of.refused(generation, failure, status, now), now)
            return VERIFY_SECONDS
        await self._verify()
        children = self._cache.children(self.owner.uid)
        await self._reader.read(children, now)
        self._live.follow(children)
        texts = Texts(
            logs=self._reader.logs,
            refusals=self._reader.refusals,
            live=self._live.found,
            refused=self._refusals.found,
            refused_analyses=self._refusals.analyses,
        )
        observed = observe(children, {} if _was_refused(status) else status, now, texts)
        planned = plan(sweep, observed, now)
        _log.debug("%s/%s: %s", self.owner.namespace, self.owner.name, planned.actions)
        failures = 0
        for action in planned.actions:
            failures += not await self._act(sweep, action, observed, children)
        await self._copy_answers(children)
        await self._write(status, planned.status, now)
        if planned.status.get("phase") not in TERMINAL:
            self._metrics.status(sweep, planned.status)
        return self._pause(planned.actions, failures, planned.next_look_seconds)

    async def _resolved(self, document: Body) -> Sweep:
        """The sweep of this generation; expanding a grid is no work for the event loop."""
        generation = int(bodies.meta(document).get("generation", 1))
        if self._sweep is None or self._sweep.generation != generation:
            owner = self.owner
            self._sweep = await asyncio.to_thread(
                resolve, document, namespace=owner.namespace, name=owner.name, uid=owner.uid
            )
        return self._sweep

    def _status(self, document: Body) -> Mapping[str, Any]:
        """The status as last written: by this driver, or as the watch shows it where that is newer."""
        version = int(bodies.meta(document).get("resourceVersion") or 0)
        return bodies.status(document) if version >= self._written[0] else self._written[1]

    async def _act(self, sweep: Sweep, action: Action, observed: Observed, children: Children) -> bool:
        try:
            await self._executor.run(sweep, action, observed, children)
        except ClusterError as error:
            self._refusals.add(self.owner, action, error, time.time())
            # What is being deleted needs nothing more: that is how every deletion of a sweep begins.
            level = logging.DEBUG if isinstance(error, ObjectGoneError) else logging.WARNING
            _log.log(level, "%s/%s: %s: %s", self.owner.namespace, self.owner.name, type(action).__name__, error)
            done = False
        else:
            self._refusals.drop(self.owner, action)
            done = True
        self._metrics.acted(sweep, action, observed, failed=not done)
        return done

    async def _copy_answers(self, children: Children) -> None:
        for job in children.jobs:
            own = [pod for pod in children.pods if _owned_by(pod, job)]
            answer = unsaved_answer(job, own)
            if answer is not None:
                await self._executor.copy_answer(job, answer)

    async def _write(self, old: Mapping[str, Any], new: Mapping[str, Any], now: float) -> None:
        """Write the status where it differs, then tell of what changed."""
        change = statuses.merge_patch(old, new)
        if change:
            # The last status ends this task, perhaps before the answer is here: what it says is still to be told.
            await asyncio.shield(self._write_and_tell(change, old, new, now))

    async def _write_and_tell(
        self, change: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any], now: float
    ) -> None:
        found = await self._api.patch_status(self.owner.namespace, self.owner.name, change)
        self._written = (int(bodies.meta(found).get("resourceVersion") or 0), bodies.status(found))
        for item in statuses.news(old, new):
            _log.info("%s/%s: %s: %s", self.owner.namespace, self.owner.name, item.reason, item.message)
            try:
                await self._api.post_event(statuses.event(self.owner, item, now))
            except ClusterError as error:
                _log.info("the event %s was not taken: %s", item.reason, error)

    async def _verify(self) -> None:
        if time.monotonic() - self._verified < VERIFY_SECONDS:
            return
        for kind, selector in SELECTORS.items():
            own = f"{selector},{SWEEP_UID}={self.owner.uid}"
            listed = await self._api.all_of(kind, self.owner.namespace, own)
            if self._cache.replace(kind, self.owner.uid, listed):
                _log.warning("%s/%s: the watch had missed a %s", self.owner.namespace, self.owner.name, kind)
        self._verified = time.monotonic()

    def _pause(self, done: tuple[Action, ...], failures: int, planned: float | None) -> float:
        """At once after progress, since own writes are seen at once; longer and longer without."""
        wanted = VERIFY_SECONDS if planned is None else min(planned, VERIFY_SECONDS)
        progress = bool(done) and done != self._last and not failures
        self._last = done
        if not done:
            self._idle_looks = 0
            return wanted
        if progress:
            self._idle_looks = 0
            return 0.0
        self._idle_looks += 1
        return min(wanted or VERIFY_SECONDS, RETRY_SECONDS[min(self._idle_looks, len(RETRY_SECONDS)) - 1])


def is_active(status: Mapping[str, Any] | None, generation: int) -> bool:
    """The sweep has not ended; or it was refused, and its spec has been changed since."""
    found = status or {}
    if found.get("phase") not in TERMINAL:
        return True
    return _was_refused(found) and int(found.get("observedGeneration") or 0) < generation


def _was_refused(status: Mapping[str, Any]) -> bool:
    return any(one.get("type") == "Accepted" and one.get("status") == "False" for one in status.get("conditions") or ())


def _owned_by(pod: Body, job: Body) -> bool:
    owners = bodies.meta(pod).get("ownerReferences") or ()
    return any(one.get("uid") == bodies.uid(job) for one in owners)
