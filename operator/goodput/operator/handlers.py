"""The operator as kopf sees it: what is watched, and one daemon for each sweep that has not ended.

The only module that imports kopf. Nothing but the finalizer is written to a sweep by kopf itself, and that only
while a daemon runs: a sweep that has ended can be deleted while the operator is down.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final, cast

import kopf

from goodput.operator.cluster.cache import SELECTORS
from goodput.operator.cluster.desk import Desk, wanted
from goodput.operator.cluster.names import FIELD_MANAGER, FINALIZER, PLURAL, Owner
from goodput.operator.spec.models import GROUP, VERSION

SWEEPS: Final = (GROUP, VERSION, PLURAL)
RESOURCES: Final[Mapping[str, tuple[str, str, str]]] = {
    "Pod": ("", "v1", "pods"),
    "ConfigMap": ("", "v1", "configmaps"),
    "Deployment": ("apps", "v1", "deployments"),
    "Job": ("batch", "v1", "jobs"),
}
STOP_SECONDS: Final = 5.0


async def serve(desk: Desk, namespaces: tuple[str, ...], stop: asyncio.Event | None = None) -> None:
    """Run until stopped. Without namespaces all of them are watched."""
    registry = kopf.OperatorRegistry()
    _sign_in(registry)
    _watch(registry, desk)
    await kopf.operator(
        registry=registry,
        settings=_settings(),
        # kopf would ask for the user's name, which a pod's user has not; it names peers, and there are none.
        identity=cast("Any", FIELD_MANAGER),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
        stop_flag=stop,
    )


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True  # no watch of CRDs and namespaces: fewer rights
    settings.peering.standalone = True
    settings.posting.enabled = False  # Events are posted by the driver, after the status was written
    settings.persistence.finalizer = FINALIZER
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP, v1=False)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP, v1=False)
    settings.execution.default_backoff = 10
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 10
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 310
    settings.watching.connect_timeout = 30
    for kind, resource in RESOURCES.items():
        settings.watching.label_selectors[resource] = SELECTORS[kind]
    return settings


def _sign_in(registry: kopf.OperatorRegistry) -> None:
    # As the official client does it: by the API server's address, since a cluster may have no DNS.
    @kopf.on.login(registry=registry, id="client")
    async def client(**kwargs: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_via_client(**kwargs)


def _watch(registry: kopf.OperatorRegistry, desk: Desk) -> None:
    for kind in SELECTORS:
        _watch_children(registry, desk, kind)

    @kopf.on.event(*SWEEPS, registry=registry, id="sweep")
    async def sweep(type: str | None, body: kopf.Body, **_: Any) -> None:  # noqa: A002  kopf's name
        desk.sweep(dict(body), gone=type == "DELETED")

    @kopf.daemon(
        *SWEEPS,
        registry=registry,
        id="drive",
        when=lambda status, meta, **_: wanted(dict(status), int(meta.get("generation", 1))),
        cancellation_timeout=STOP_SECONDS,
    )
    async def drive(body: kopf.Body, stopped: kopf.DaemonStopped, **_: Any) -> None:
        meta = body.metadata
        owner = Owner(str(meta["namespace"]), str(meta["name"]), str(meta["uid"]))
        driving = asyncio.create_task(desk.drive(owner, dict(body)), name=f"{FIELD_MANAGER} {owner.name}")
        try:
            await stopped.wait()
        finally:
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)

    @kopf.on.startup(registry=registry, id="janitor")
    async def janitor(memo: Any, **_: Any) -> None:
        memo.janitor = asyncio.create_task(desk.clean(), name=f"{FIELD_MANAGER} janitor")

    @kopf.on.cleanup(registry=registry, id="janitor")
    async def leave(memo: Any, **_: Any) -> None:
        memo.janitor.cancel()
        await asyncio.gather(memo.janitor, return_exceptions=True)

    for name in ("kopf.objects", "kopf.activities", "aiohttp.access", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _watch_children(registry: kopf.OperatorRegistry, desk: Desk, kind: str) -> None:
    # The index is what makes kopf hold back all drivers until the first lists are complete.
    @kopf.index(*RESOURCES[kind], registry=registry, id=f"{kind.lower()}s")
    async def indexed(body: kopf.Body, **_: Any) -> None:
        desk.child(kind, dict(body))

    @kopf.on.event(*RESOURCES[kind], registry=registry, id=f"{kind.lower()}")
    async def changed(type: str | None, body: kopf.Body, **_: Any) -> None:  # noqa: A002  kopf's name
        desk.child(kind, dict(body), gone=type == "DELETED")
