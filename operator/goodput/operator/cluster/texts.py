"""What the planner needs to know and no index holds: logs of servers that ended, and why a Job has no pod."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from goodput.operator.cluster import bodies, names
from goodput.operator.cluster.api import Api
from goodput.operator.cluster.bodies import Body
from goodput.operator.cluster.observe import Children

LOG_CHARACTERS: Final = 256 << 10
REFUSED_AFTER_SECONDS: Final = 3.0
"""A Job without a pod for longer than this: the reason is asked for. Job controllers take milliseconds."""
ASK_AGAIN_SECONDS: Final = 5.0


class Reader:
    """Reads each text once and keeps it as long as its object is there."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.logs: dict[str, str] = {}  # by pod
        self.refusals: dict[str, str] = {}  # by Job
        self._asked: dict[str, float] = {}

    async def read(self, children: Children, now: float) -> None:
        """Bring the texts up to date with what is there."""
        ended = [pod for pod in children.pods if self._is_wanted(pod)]
        jobs = list(self._without_pod(children, now))
        await asyncio.gather(*map(self._read_log, ended), *(self._read_refusal(job, now) for job in jobs))
        pods = {bodies.uid(pod) for pod in children.pods}
        self.logs = {uid: text for uid, text in self.logs.items() if uid in pods}
        with_pods = {bodies.labels(pod).get("batch.kubernetes.io/job-name") for pod in children.pods}
        without = {bodies.uid(job) for job in children.jobs if bodies.meta(job)["name"] not in with_pods}
        self.refusals = {uid: text for uid, text in self.refusals.items() if uid in without}

    def _is_wanted(self, pod: Body) -> bool:
        ours = bodies.labels(pod).get(names.ROLE) == names.SERVER and bodies.uid(pod) not in self.logs
        return ours and bodies.terminated(pod, names.SERVER) is not None

    async def _read_log(self, pod: Body) -> None:
        found = bodies.container_status(pod, names.SERVER)
        restarted = "terminated" not in (found.get("state") or {})
        text = await self._api.log(pod, names.SERVER, previous=restarted)
        if text is not None:
            self.logs[bodies.uid(pod)] = text[-LOG_CHARACTERS:]

    def _without_pod(self, children: Children, now: float) -> Iterable[Body]:
        owned = {str(one["uid"]) for pod in children.pods for one in bodies.meta(pod).get("ownerReferences") or ()}
        for job in children.jobs:
            uid, status = bodies.uid(job), bodies.status(job)
            stopped = job.get("spec", {}).get("parallelism") == 0
            over = stopped or status.get("succeeded") or status.get("failed") or status.get("completionTime")
            young = now - bodies.created(job) < REFUSED_AFTER_SECONDS
            asked = now - self._asked.get(uid, 0.0) < ASK_AGAIN_SECONDS
            if uid not in owned and not (over or young or asked or bodies.deleting(job)):
                yield job

    async def _read_refusal(self, job: Body, now: float) -> None:
        self._asked[bodies.uid(job)] = now
        events = await self._api.events(str(bodies.meta(job)["namespace"]), bodies.uid(job))
        failed = [event for event in events if event.get("reason") == "FailedCreate"]
        if failed:
            last = max(failed, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
            self.refusals[bodies.uid(job)] = str(last.get("message", ""))
