"""``goodput-runner``: measures one trial, or checks the store before any server is started."""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
from pydantic import ValidationError

from goodput.analysis.packing import unpack
from goodput.runner.canary import canary
from goodput.runner.contract import CanaryInput, TrialPlan
from goodput.runner.errors import RunnerError
from goodput.runner.stop import Stop

_T = TypeVar("_T")
TERMINATION_LOG = Path("/dev/termination-log")
_message = click.option(
    "--message",
    type=click.Path(dir_okay=False, path_type=Path),
    default=TERMINATION_LOG,
    show_default=True,
    help="Where the outcome is written: the container's termination message.",
)


@click.group()
@click.option("--verbose", is_flag=True, help="Log more.")
def main(verbose: bool) -> None:
    """Measure one trial against one server."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    # Request lines of every scrape and poll; headers (which may hold a key) appear at DEBUG.
    for name in ("httpx", "httpcore", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)


@main.command()
@click.option("--plan", "plan_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True)
@click.option(
    "--spool",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder that outlives a restart of the container.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of /status and /metrics; 0: any.")
@click.option("--host", default="0.0.0.0", show_default=True)  # noqa: S104  # scraped and polled by pod IP
@_message
@click.option("--spool-limit", type=click.IntRange(min=1), help="Bytes that may wait for a store that refuses.")
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    help="Workers of the load client; without it as many as each load needs, one per core at most.",
)
@click.option("--follow/--no-follow", default=None, help="Live latencies. Default: where there is a core for them.")
def trial(
    *,
    plan_file: Path,
    spool: Path,
    port: int,
    host: str,
    message: Path,
    spool_limit: int | None,
    processes: int | None,
    follow: bool | None,
) -> None:
    """Verify, warm, measure and commit one trial. Exit code 0 whenever an outcome was written."""
    # Arrow, NumPy and the load client: the canary starts without them.
    from goodput.runner.status import Board, StatusServer  # noqa: PLC0415
    from goodput.runner.trial import Trial, refused  # noqa: PLC0415

    plan = _read(lambda: TrialPlan.model_validate_json(unpack(plan_file.read_bytes())), plan_file)
    spool.mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = str(spool)  # a pod's root is read-only
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    board = Board(plan)
    server = StatusServer(board, host, port)
    logging.getLogger(__name__).info("status on port %d", server.port)
    try:
        outcome = Trial(
            plan, spool, board, stop, spool_limit_bytes=spool_limit, processes=processes, follow=follow
        ).run()
    except RunnerError as error:
        logging.getLogger(__name__).warning("the trial cannot begin: %s", error)
        outcome = refused(plan, error)
    finally:
        server.close()
    message.write_text(outcome.message(), encoding="utf-8")


@main.command("canary")
@click.option("--input", "input_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=True)
@_message
def canary_command(*, input_file: Path, message: Path) -> None:
    """Write spec.json and check that the store honours create-only. Exit code 0 or 1; the message says why."""
    answer = canary(_read(lambda: CanaryInput.model_validate_json(unpack(input_file.read_bytes())), input_file))
    message.write_text(answer.model_dump_json(), encoding="utf-8")
    if not answer.ok:
        click.echo(f"{answer.reason}: {answer.message}", err=True)
        sys.exit(1)


def _read(load: Callable[[], _T], file: Path) -> _T:
    try:
        return load()
    except ValidationError as error:
        raise click.ClickException(f"{file}: {error}") from error
