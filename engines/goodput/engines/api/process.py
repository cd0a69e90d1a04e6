"""A server as a process: listening, stopping, what becomes of open requests."""

import asyncio
import gc
import logging
import signal
from typing import Any

from aiohttp import web

from goodput.engines.api.server import ApiServer

_log = logging.getLogger(__name__)
#: Time for connections to take their last bytes after the engine has stopped.
_CLOSE_SECONDS = 5.0


def stop_signals() -> asyncio.Event:
    """Set by SIGTERM and SIGINT. Call it inside the event loop."""
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    return stop


async def run(
    server: ApiServer[Any], *, name: str, host: str, port: int, shutdown_timeout: int, stop: asyncio.Event
) -> None:
    """Listens until `stop`; then open requests have `shutdown_timeout` seconds, and the rest are cut off.

    Raises:
        SystemExit: it cannot listen there.
    """
    runner = web.AppRunner(
        server.application(), handler_cancellation=True, access_log=None, shutdown_timeout=_CLOSE_SECONDS
    )
    await runner.setup()
    site = web.TCPSite(runner, host, port, backlog=4096, reuse_address=True)
    try:
        await site.start()
    except OSError as error:
        await runner.cleanup()
        raise SystemExit(f"cannot listen on {host}:{port}: {error}") from error
    _log.info("Starting %s on http://%s:%d", name, host, port)
    gc.collect()
    gc.freeze()
    await stop.wait()
    await _shut_down(server, site, runner, shutdown_timeout)


async def _shut_down(server: ApiServer[Any], site: web.TCPSite, runner: web.AppRunner, timeout_seconds: int) -> None:
    mode = "drain" if timeout_seconds > 0 else "abort"
    _log.info("[shutdown] API server: shutdown triggered, mode=%s timeout=%ds", mode, timeout_seconds)
    await site.stop()
    try:
        await asyncio.wait_for(server.wait_idle(), timeout_seconds)
    except TimeoutError:
        _log.warning("[shutdown] aborting in-flight requests count=%d", server.num_unfinished)
    server.abort_all()
    await runner.cleanup()
    server.close()
    _log.info("[shutdown] complete")
