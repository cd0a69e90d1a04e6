"""``goodput-operator``: runs BenchmarkSweeps of a cluster. Every option is also a variable, ``GOODPUT_<OPTION>``."""

from __future__ import annotations

import asyncio
import logging
import sys

import click

from goodput.operator.cluster.settings import Images, OperatorSettings


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
    from goodput.operator.cluster.api import Api  # noqa: PLC0415
    from goodput.operator.cluster.cache import Cache  # noqa: PLC0415
    from goodput.operator.cluster.desk import Desk  # noqa: PLC0415
    from goodput.operator.cluster.kit import Kit  # noqa: PLC0415
    from goodput.operator.cluster.rest import Rest  # noqa: PLC0415
    from goodput.operator.health import HealthServer, Heart  # noqa: PLC0415
    from goodput.operator.metrics import Metrics  # noqa: PLC0415

    heart, metrics = Heart(), Metrics()
    desk = Desk(Kit(Api(Rest.connect()), Cache(), settings.images, metrics))
    health = HealthServer(metrics.registry, lambda: heart.alive, settings.port)
    beat = asyncio.create_task(heart.beat())
    try:
        await handlers.serve(desk, settings.namespaces, stop)
    finally:
        beat.cancel()
        health.close()
