"""What the driver asks of the API server, off the event loop. Creates and deletes are idempotent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from goodput.operator.cluster import bodies, names
from goodput.operator.cluster.bodies import Body
from goodput.operator.cluster.errors import ApiError, NameTakenError, ObjectGoneError
from goodput.operator.cluster.rest import Rest, path_of
from goodput.operator.spec.models import API_VERSION

LOG_BYTES = 16 << 20


class Api:
    """Asynchronous calls; each runs in a thread. Raises `ApiError` and its siblings (`cluster.errors`)."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def create(self, body: Mapping[str, Any]) -> Body:
        """Create the object. One of that name with the same owner is as good.

        Raises:
            NameTakenError: an object of that name has another owner.
            ObjectGoneError: the object, or its namespace, is being deleted.
        """
        kind, meta = str(body["kind"]), bodies.meta(body)
        namespace, name = str(meta["namespace"]), str(meta["name"])
        try:
            return await self._json("POST", path_of(kind, namespace), body, fieldValidation="Strict")
        except ApiError as error:
            if error.status != 409:
                raise
        found = await self._json("GET", path_of(kind, namespace, name))
        if _owner(found) != _owner(body):
            raise NameTakenError(f"{kind} {namespace}/{name} exists and belongs to somebody else")
        if bodies.deleting(found):
            raise ObjectGoneError(f"{kind} {namespace}/{name} is still being deleted")
        return found

    async def delete(self, kind: str, namespace: str, name: str, uid: str | None = None) -> None:
        """Delete the object and, in the background, what it owns. One that is not there is as good.

        With ``uid`` only that very object: one of the same name that was created since stays.
        """
        options: dict[str, Any] = {"propagationPolicy": "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        try:
            await self._json("DELETE", path_of(kind, namespace, name), options)
        except ApiError as error:
            if error.status != 404 and not (error.status == 409 and uid is not None):
                raise

    async def delete_all(self, kind: str, namespace: str, selector: str) -> None:
        """Delete all objects of a kind with these labels."""
        await self._json("DELETE", path_of(kind, namespace), labelSelector=selector)

    async def get(self, kind: str, namespace: str, name: str) -> Body:
        """The object as it is now."""
        return await self._json("GET", path_of(kind, namespace, name))

    async def all_of(self, kind: str, namespace: str, selector: str) -> list[Body]:
        """The objects of a kind with these labels, as they are now."""
        found = await self._json("GET", path_of(kind, namespace), labelSelector=selector)
        items: list[Body] = found.get("items") or []
        return items

    async def patch(self, kind: str, namespace: str, name: str, change: Mapping[str, Any]) -> Body:
        """Merge a change into the object."""
        return await self._json("PATCH", path_of(kind, namespace, name), change, fieldManager=names.FIELD_MANAGER)

    async def annotate(self, kind: str, namespace: str, name: str, found: Mapping[str, str]) -> Body:
        """Set annotations; the others stay."""
        return await self.patch(kind, namespace, name, {"metadata": {"annotations": dict(found)}})

    async def patch_status(self, namespace: str, name: str, change: Mapping[str, Any]) -> Body:
        """Merge a change into the status of a sweep."""
        path = path_of("BenchmarkSweep", namespace, name, "status")
        return await self._json("PATCH", path, {"status": dict(change)}, fieldManager=names.FIELD_MANAGER)

    async def log(self, pod: Body, container: str, *, previous: bool = False) -> str | None:
        """The log of a container, None where there is none (any more)."""
        meta = bodies.meta(pod)
        path = path_of("Pod", str(meta["namespace"]), str(meta["name"]), "log")
        options: dict[str, Any] = {"container": container, "limitBytes": LOG_BYTES}
        if previous:
            options["previous"] = "true"
        try:
            return await asyncio.to_thread(self._rest.text, path, **options)
        except ApiError as error:
            if error.status in (400, 404):  # no container has run yet, or the pod is gone
                return None
            raise

    async def events(self, namespace: str, uid: str) -> list[Body]:
        """Events about one object."""
        found = await self._json("GET", path_of("Event", namespace), fieldSelector=f"involvedObject.uid={uid}")
        items: list[Body] = found.get("items") or []
        return items

    async def post_event(self, body: Mapping[str, Any]) -> None:
        """Post an Event."""
        await self._json("POST", path_of("Event", str(bodies.meta(body)["namespace"])), body)

    async def serves_sweeps(self) -> bool:
        """Whether the API server knows BenchmarkSweeps: the CRD is installed and established."""
        try:
            found = await self._json("GET", f"/apis/{API_VERSION}")
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return any(one.get("name") == names.PLURAL for one in found.get("resources") or ())

    async def _json(self, method: str, path: str, body: object = None, **query: object) -> dict[str, Any]:
        try:
            return await asyncio.to_thread(self._rest.json, method, path, body, **query)
        except ApiError as error:
            if error.status == 403 and "being terminated" in str(error):
                raise ObjectGoneError(str(error)) from error
            raise


def _owner(body: Body) -> str | None:
    owners = bodies.meta(body).get("ownerReferences") or ()
    return next((str(one["uid"]) for one in owners if one.get("controller")), None)
