"""The children of all sweeps as last seen: by the watch, or in the answers to the driver's own writes.

The newer of the two counts, so a server that was just created is seen in the next look although the watch has not
shown it yet. Memory only: after a restart the watch's first list fills it before any sweep is looked at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from goodput.operator.cluster import bodies, names
from goodput.operator.cluster.bodies import Body
from goodput.operator.cluster.observe import Children

SELECTORS: Final = {
    "Pod": names.SWEEP_UID,
    "Job": names.SWEEP_UID,
    "Deployment": names.SWEEP_UID,
    # Not those with logs and inputs: nothing is read from them, and each has up to a megabyte.
    "ConfigMap": f"{names.SWEEP_UID},{names.ROLE}={names.MEMORY}",
}
"""Label selectors of what is watched, by kind."""
TOMBSTONES: Final = 4096
"""Objects that are gone, remembered so that a late answer to an earlier write does not bring them back."""


class Cache:
    """Bodies by sweep, kind and UID."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, dict[str, Body]]] = {}  # sweep UID → kind → UID
        self._gone: OrderedDict[str, None] = OrderedDict()

    def put(self, kind: str, body: Body) -> bool:
        """An object as it is, or was a moment ago. True where this is news."""
        marks, uid = bodies.labels(body), bodies.uid(body)
        sweep = marks.get(names.SWEEP_UID)
        unwatched = kind == "ConfigMap" and marks.get(names.ROLE) != names.MEMORY
        if not sweep or unwatched or uid in self._gone:
            return False
        known = self._found.setdefault(sweep, {}).setdefault(kind, {})
        if uid in known and _version(known[uid]) >= _version(body):
            return False
        known[uid] = bodies.slim(body)
        return True

    def leaving(self, kind: str, sweep: str, name: str) -> None:
        """A delete of that name was accepted: it is on its way out, whatever the watch still shows."""
        known = self._found.get(sweep, {}).get(kind, {})
        for uid, body in known.items():
            if bodies.meta(body).get("name") == name and not bodies.deleting(body):
                mark = {**bodies.meta(body), "deletionTimestamp": bodies.timestamp(0)}
                known[uid] = {**body, "metadata": mark}

    def drop(self, kind: str, sweep: str, uid: str) -> None:
        """An object is gone."""
        self._gone[uid] = None
        while len(self._gone) > TOMBSTONES:
            self._gone.popitem(last=False)
        self._found.get(sweep, {}).get(kind, {}).pop(uid, None)

    def replace(self, kind: str, sweep: str, listed: Iterable[Body]) -> bool:
        """A fresh list of all objects of a kind. True where the watch had missed something."""
        there = {bodies.uid(body): body for body in listed}
        ghosts = self._found.get(sweep, {}).get(kind, {}).keys() - there.keys()
        for uid in ghosts:
            self.drop(kind, sweep, uid)
        news = [self.put(kind, body) for body in there.values()]
        return bool(ghosts) or any(news)

    def children(self, sweep: str) -> Children:
        """All that is there of a sweep."""
        kinds = {kind: list(self._found.get(sweep, {}).get(kind, {}).values()) for kind in SELECTORS}
        return Children(kinds["Pod"], kinds["Job"], kinds["Deployment"], kinds["ConfigMap"])

    def forget(self, sweep: str) -> None:
        """The sweep is gone; what is left of it is the garbage collector's."""
        self._found.pop(sweep, None)


def _version(body: Body) -> int:
    """Resource versions grow with every write and compare as numbers (Kubernetes KEP-5504)."""
    return int(bodies.meta(body).get("resourceVersion") or 0)
