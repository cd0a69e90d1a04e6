"""Packs what a trial leaves behind, as the cluster driver does, for the analysis to upload."""

from __future__ import annotations

import json
import platform
import shutil
import sys

from goodput.operator.cluster.logs import RUNNER_LOG, SERVER_LOG, TARGET, packed, scrub
from goodput.operator.local import layout
from goodput.operator.local.gpus import gpus
from goodput.operator.local.layout import Layout
from goodput.operator.sweep import TrialId

LIMIT_BYTES = 8 << 20
"""Of each packed log; one that is longer loses its middle."""


def save(folders: Layout, trial: TrialId) -> None:
    """Pack the logs of an attempt."""
    found, pack = folders.trial(trial), folders.pack(trial)
    for path, name in ((found.server_log, SERVER_LOG), (found.runner_log, RUNNER_LOG)):
        text = layout.read_text(path)
        if text:
            layout.write(pack / name, packed(text, LIMIT_BYTES))
    plan = layout.read(found.plan)
    if plan is not None:
        layout.write(pack / found.plan.name, scrub(plan.decode()).encode())
    layout.write(pack / "pod.json", json.dumps(_machine()).encode())
    layout.write(pack / TARGET, trial.folder.encode())


def drop(folders: Layout, trial: TrialId) -> None:
    """Forget a pack that is in the store."""
    shutil.rmtree(folders.pack(trial), ignore_errors=True)


def _machine() -> dict[str, object]:
    """What stands for the pods' descriptions on one machine. ``gpus`` is empty where there are none to be seen."""
    return {
        "platform": platform.platform(),
        "machine": platform.machine(),
        "python": sys.version.split()[0],
        "gpus": [gpu.facts.model_dump() for gpu in gpus()],
    }
