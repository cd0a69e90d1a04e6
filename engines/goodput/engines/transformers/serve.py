"""The baseline as a process: load, first token, listen, stop."""

import logging
import time
from argparse import Namespace

import uvloop

from goodput.engines.api.process import run, stop_signals
from goodput.engines.transformers.hub import HubModel
from goodput.engines.transformers.model import Choice, Model
from goodput.engines.transformers.server import BaselineServer

_log = logging.getLogger(__name__)


def serve(namespace: Namespace) -> None:
    """Runs the server in the foreground until SIGTERM or SIGINT.

    Raises:
        ModelError: the model cannot be loaded.
        ArgumentError: a flag does not go with model or machine.
        SystemExit: it cannot listen, or generating failed (code 1).
    """
    model = _load(namespace)
    if uvloop.run(_run(namespace, model)):
        raise SystemExit("generating failed, see above")


def _load(namespace: Namespace) -> Model:
    begin = time.monotonic()
    model = HubModel(
        namespace.model,
        revision=namespace.revision,
        dtype=namespace.dtype,
        device=namespace.device,
        attn_implementation=namespace.attn_implementation,
        max_model_len=namespace.max_model_len,
        trust_remote_code=namespace.trust_remote_code,
        seed=namespace.seed,
    )
    _log.info("Model loading took %.2f s: %s", time.monotonic() - begin, model.facts)
    begin = time.monotonic()
    _first_token(model)
    _log.info("The first token took %.2f s", time.monotonic() - begin)
    return model


def _first_token(model: Model) -> None:
    """What cannot generate at all must fail before the port opens."""
    model.generate(
        [min(model.facts.eos_token_ids, default=0)],
        max_tokens=1,
        min_tokens=0,
        stop_ids=(),
        choice=Choice(temperature=0.0),
        on_token=lambda _token: None,
        cancelled=lambda: False,
    )


async def _run(namespace: Namespace, model: Model) -> bool:
    """Whether generating failed."""
    stop = stop_signals()
    names = namespace.served_model_name or [namespace.model]
    server = BaselineServer(
        model,
        name=namespace.model,
        served_name=names[0],
        revision=namespace.revision,
        api_keys=tuple(namespace.api_key),
        on_failure=stop.set,
    )
    await run(
        server,
        name="Transformers server (one request at a time)",
        host=namespace.host,
        port=namespace.port,
        shutdown_timeout=namespace.shutdown_timeout,
        stop=stop,
    )
    return server.queue.failed
