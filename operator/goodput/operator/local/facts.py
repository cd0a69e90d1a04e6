"""What this machine knows of a server that was started here, for ``trial.json``."""

from __future__ import annotations

import platform

from goodput.operator.local import commands, layout
from goodput.operator.local.gpus import gpus
from goodput.operator.local.layout import TrialFolder
from goodput.operator.local.modelfiles import content_hash, snapshot
from goodput.operator.local.servers import LocalServer
from goodput.operator.serverlog import parse_log
from goodput.operator.sweep import Sweep, TrialId
from goodput.runner.contract import ServerFacts


def own_facts(sweep: Sweep, trial: TrialId, folder: TrialFolder, server: LocalServer, order: int) -> ServerFacts:
    """Of a server that is ready."""
    model, config = sweep.spec.model, sweep.by_id[trial.config]
    loads_files = config.kind != "simulated"
    environment = commands.server_environment(sweep, trial, folder)
    return ServerFacts(
        url=server.url,
        node=platform.node() or None,
        order=order,
        start_seconds=None if server.ready is None else server.ready - server.since,
        log=parse_log(layout.read_text(folder.server_log)),
        gpus=tuple(gpu.facts for gpu in gpus()[: config.gpus]) if config.gpus else (),
        model_revision=snapshot(model.name, model.revision, environment) if loads_files else None,
        model_content=content_hash(model.name) if loads_files else None,
    )
