"""``goodput-operator``: runs BenchmarkSweeps of a cluster. Every option is also a variable, ``GOODPUT_<OPTION>``."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Final

import click

from goodput.operator.cluster.api import Api
from goodput.operator.cluster.errors import ApiError
from goodput.operator.cluster.settings import Images, OperatorSettings

_log = logging.getLogger(__name__)

CRD_SECONDS: Final = 2.0
CRD_GUARD_SECONDS: Final = 30.0


@click.command(context_settings={"auto_envvar_prefix": "GOODPUT"})
@click.option("--namespace", "namespaces", multiple=True, help="Namespace to watch; repeat for more; without it all.")
@click.option("--runner-image", required=True, help="Image of runner and canary, where a sweep names none.")
@click.option("--analysis-image", required=True, help="Image of the analysis.")
@click.option("--engines-image", required=True, help="Image of simulated engines, where a sweep names none.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Of /metrics, /healthz.")
@click.option("--verbose", is_flag=True, help="Log more.")
def main(
    *,
    namespaces: tuple[str, ...],
    runner_image: str,
    analysis_image: str,
    engines_image: str,
    port: int,
    verbose: bool,
) -> None:
    """Run BenchmarkSweeps until stopped by a signal."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    images = Images(runner=runner_image, analysis=analysis_image, engines=engines_image)
    asyncio.run(run(OperatorSettings(images, namespaces, port)))


async def run(settings: OperatorSettings, stop: asyncio.Event | None = None) -> None:
    """One operator, until ``stop`` is set or a signal comes."""
    # Imported here: `--help` must not wait for kopf.
    from goodput.operator import handlers  # noqa: PLC0415
    from goodput.operator.cluster.cache import Cache  # noqa: PLC0415
    from goodput.operator.cluster.desk import Desk  # noqa: PLC0415
    from goodput.operator.cluster.kit import Kit  # noqa: PLC0415
    from goodput.operator.cluster.rest import Rest  # noqa: PLC0415
    from goodput.operator.health import HealthServer, Heart  # noqa: PLC0415
    from goodput.operator.metrics import Metrics  # noqa: PLC0415

    heart, metrics = Heart(), Metrics()
    kit = Kit(Api(Rest.connect()), Cache(), settings.images, metrics)
    health = HealthServer(metrics.registry, lambda: heart.alive, settings.port)
    beat = asyncio.create_task(heart.beat())
    ended = stop or asyncio.Event()
    guard: asyncio.Task[None] | None = None
    try:
        await _installed(kit.api)
        guard = asyncio.create_task(_guard(kit.api, ended))
        await handlers.serve(Desk(kit), settings.namespaces, ended)
    finally:
        beat.cancel()
        if guard is not None:
            guard.cancel()
        health.close()


async def _installed(api: Api) -> None:
    """Wait until the CRD is there: kopf looks for it once."""
    while not await api.serves_sweeps():
        _log.warning("the API server does not know BenchmarkSweeps: waiting for the CRD")
        await asyncio.sleep(CRD_SECONDS)


async def _guard(api: Api, ended: asyncio.Event) -> None:
    """End when the CRD has gone: its watch is dead. The kubelet starts the operator again."""
    while True:
        await asyncio.sleep(CRD_GUARD_SECONDS)
        try:
            there = await api.serves_sweeps()
        except ApiError:
            continue  # no answer says nothing
        if not there:
            _log.error("the API server does not know BenchmarkSweeps any more")
            ended.set()
