"""What the driver wrote and the watch may not have shown yet, laid over what the indexes hold.

Without it a server that was just created would not be seen in the next look, and another one be started.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from goodput.operator.cluster import bodies
from goodput.operator.cluster.bodies import Body


class Overlay:
    """The own writes of one sweep, each until the watch has caught up with it."""

    def __init__(self) -> None:
        self._written: dict[str, Body] = {}  # by UID
        self._deleted: set[str] = set()  # told to go, still to be seen so
        self._ghosts: set[str] = set()  # in an index, but not there: the watch missed the end

    def wrote(self, body: Body) -> None:
        """An object as the API server answered it after a create or a patch."""
        self._written[bodies.uid(body)] = bodies.slim(body)

    def deleted(self, uid: str) -> None:
        """A delete was accepted."""
        self._deleted.add(uid)

    def event(self, body: Body, *, gone: bool) -> None:
        """The watch showed an object: ``gone`` for the last time."""
        uid = bodies.uid(body)
        if gone:
            self._written.pop(uid, None)
            self._deleted.discard(uid)
            self._ghosts.discard(uid)
        elif (mine := self._written.get(uid)) is not None and _version(body) >= _version(mine):
            del self._written[uid]

    def verified(self, kind: str, indexed: Iterable[Body], listed: Iterable[Body]) -> bool:
        """A fresh list of all objects of a kind, against the index as it was before. True: they differed."""
        there = {bodies.uid(body): body for body in listed}
        known = {bodies.uid(body): body for body in indexed}
        ghosts = known.keys() - there.keys() - self._ghosts
        self._ghosts |= ghosts
        lost = [uid for uid, mine in self._written.items() if mine.get("kind") == kind and uid not in there]
        for uid in lost:
            del self._written[uid]
        missing = [body for uid, body in there.items() if uid not in known and uid not in self._written]
        for body in missing:
            self.wrote({"kind": kind, **body})
        return bool(ghosts or lost or missing)

    def lay(self, kind: str, indexed: Sequence[Body]) -> list[Body]:
        """The index with the own writes of that kind on top."""
        shown = {bodies.uid(body): body for body in indexed if bodies.uid(body) not in self._ghosts}
        for uid, mine in self._written.items():
            if mine.get("kind") == kind and (uid not in shown or _version(shown[uid]) < _version(mine)):
                shown[uid] = mine
        return [_leaving(body) if uid in self._deleted else body for uid, body in shown.items()]


def _version(body: Body) -> int:
    """Resource versions grow with every write; Kubernetes promises that they compare as numbers (KEP-5504)."""
    return int(bodies.meta(body).get("resourceVersion") or 0)


def _leaving(body: Body) -> Body:
    if bodies.deleting(body):
        return body
    return {**body, "metadata": {**bodies.meta(body), "deletionTimestamp": "1970-01-01T00:00:00Z"}}
