"""The exact command line of a server."""

from __future__ import annotations

from collections.abc import Mapping

from goodput.operator.spec.engineversion import flags_of
from goodput.operator.spec.flagtable import option
from goodput.operator.spec.models import EngineSpec, ModelSpec

#: Port of servers in pods; on one machine every server gets a free one.
SERVER_PORT = 8000
#: A server that gets SIGTERM finishes open streams for so long. Without it vLLM cuts them off without an end.
SHUTDOWN_SECONDS = 20

_PROGRAMS = {
    "vllm": ("vllm", "serve"),
    "transformers": ("goodput-engine-transformers",),
    "simulated": ("goodput-engine-simulated",),
}


def server_command(
    engine: EngineSpec,
    flags: Mapping[str, str],
    model: ModelSpec,
    *,
    port: int = SERVER_PORT,
    host: str | None = None,
) -> tuple[str, ...]:
    """Words of the server's command line; ``flags`` are a config's effective flags in normal spelling.

    External servers are not started: no words. ``host`` is the address to listen on; without it the engine's
    default, all addresses.
    """
    if engine.kind == "external":
        return ()
    words = [*_PROGRAMS[engine.kind], model.name, option("served_model_name"), model.served]
    if engine.kind != "simulated" and model.revision:
        words += [option("revision"), model.revision]
    if engine.kind == "simulated":
        words += [option("profile"), engine.profile or "teaching"]
    if host:
        words += [option("host"), host]
    words += [option("port"), str(port), option("shutdown_timeout"), str(SHUTDOWN_SECONDS)]
    return (*words, *flags_of(engine).arguments(flags))
