"""The simulated server as a process: start, log, statistics."""

import asyncio
import logging
import time
from argparse import Namespace

import uvloop

from goodput.engines.api.process import run, stop_signals
from goodput.engines.simulated import info
from goodput.engines.simulated.config import EngineConfig
from goodput.engines.simulated.profile import Profile
from goodput.engines.simulated.server import SimulatedServer

_log = logging.getLogger(__name__)
_STATS_SECONDS = 10.0


def serve(namespace: Namespace, config: EngineConfig, profile: Profile) -> None:
    """Runs the server in the foreground until SIGTERM or SIGINT."""
    uvloop.run(_run(namespace, config, profile))


async def _run(namespace: Namespace, config: EngineConfig, profile: Profile) -> None:
    begin = time.monotonic()
    stop = stop_signals()
    _log_config(namespace, config, profile)
    if await _stopped_within(stop, namespace.start_seconds):
        _log.info("Terminated while starting.")
        return
    _log_ready(config, time.monotonic() - begin)
    server = SimulatedServer(config, profile, tuple(namespace.api_key))
    statistics = asyncio.create_task(_log_statistics(server))
    await run(
        server,
        name="vLLM server (simulated)",
        host=namespace.host,
        port=namespace.port,
        shutdown_timeout=namespace.shutdown_timeout,
        stop=stop,
    )
    statistics.cancel()
    _log.info("Steps: %s", server.loop.lateness)


async def _stopped_within(stop: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return False
    return True


def _log_config(namespace: Namespace, config: EngineConfig, profile: Profile) -> None:
    scheduler = config.scheduler
    _log.info("vLLM API server version %s (simulated), model %s", info.VERSION, config.model)
    given = {key: value for key, value in vars(namespace).items() if value not in (None, [])}
    given.pop("api_key", None)
    _log.info("args: %s", given)
    _log.info("Step-time profile %s (synthetic): %s", profile.name, profile.source)
    if profile.max_running is not None:
        _log.info("The profile runs at most %d request(s) at once.", profile.max_running)
    _log.info("Using max model len %d", scheduler.max_model_len)
    if scheduler.enable_chunked_prefill:
        _log.info("Chunked prefill is enabled with max_num_batched_tokens=%d.", scheduler.max_num_batched_tokens)
    if scheduler.max_num_batched_tokens > scheduler.max_num_seqs * scheduler.max_model_len:
        _log.warning(
            "max_num_batched_tokens (%d) exceeds max_num_seqs * max_model_len (%d). "
            "This may lead to unexpected behavior.",
            scheduler.max_num_batched_tokens,
            scheduler.max_num_seqs * scheduler.max_model_len,
        )


def _log_ready(config: EngineConfig, seconds: float) -> None:
    cache, length = config.cache, config.scheduler.max_model_len
    _log.info(
        "GPU KV cache size: %s tokens, Maximum concurrency for %s tokens per request: %.2fx",
        f"{cache.size_tokens:,}",
        f"{length:,}",
        cache.size_tokens / length,
    )
    _log.info("init engine (profile, create kv cache, warmup model) took %.2f s", seconds)


async def _log_statistics(server: SimulatedServer) -> None:
    """The line that vLLM logs every 10 s, while there is something to say."""
    stats = server.stats
    prompt, generated = 0, 0
    while True:
        await asyncio.sleep(_STATS_SECONDS)
        rates = [
            (new - old) / _STATS_SECONDS
            for new, old in ((stats.prompt_tokens, prompt), (stats.generation_tokens, generated))
        ]
        prompt, generated = stats.prompt_tokens, stats.generation_tokens
        if any(rates) or stats.running or stats.waiting:
            hits = 100 * stats.prefix_hits / stats.prefix_queries if stats.prefix_queries else 0.0
            _log.info(
                "Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, "
                "Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: %.1f%%, "
                "Prefix cache hit rate: %.1f%%",
                *rates,
                stats.running,
                stats.waiting,
                100 * stats.kv_usage,
                hits,
            )
