"""The canary (before anything is started) and the analysis runs: Jobs whose input is a ConfigMap."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from goodput.operator.actions import StartAnalysis
from goodput.operator.cluster import names
from goodput.operator.cluster.manifests import base
from goodput.operator.cluster.manifests.base import Body
from goodput.operator.cluster.manifests.job import Work, job
from goodput.operator.cluster.names import Owner
from goodput.operator.plan.limits import ANALYSIS_DEADLINE_SECONDS, CANARY_DEADLINE_SECONDS
from goodput.operator.spec.base import Resources
from goodput.operator.sweep import Sweep, TrialId
from goodput.operator.trialplan import results_target

INPUT_FOLDER: Final = "/input"
LOGS_FOLDER: Final = "/logs"
CANARY_FILE: Final = "canary.json"
ANALYSIS_FILE: Final = "analysis.json"
TERMINATION_LOG: Final = "/dev/termination-log"
CANARY_NEEDS: Final = {"requests": {"cpu": "50m", "memory": "64Mi"}}
ANALYSIS_NEEDS: Final = {"requests": {"cpu": "100m", "memory": "256Mi"}}
FINAL: Final = "final"  # the label's value where no block has ended


def canary_job(sweep: Sweep, *, image: str) -> Body:
    """Writes ``spec.json`` and checks create-only, with the runner's identity."""
    owner = Owner.of(sweep)
    name = names.canary_name(owner)
    work = Work(
        name=name,
        labels=names.labels(owner, names.CANARY),
        container="runner",
        image=image,
        command=["goodput-runner", "canary", "--input", f"{INPUT_FOLDER}/{CANARY_FILE}"],
        volumes=[base.config_map("input", INPUT_FOLDER, name)],
        resources=base.resources(Resources(), CANARY_NEEDS),
        backoff=0,
        restart="Never",
        deadline_seconds=int(CANARY_DEADLINE_SECONDS),
    )
    return job(sweep.spec, owner, work)


def analysis_job(sweep: Sweep, generation: int, block: str | None, logs: Sequence[TrialId], *, image: str) -> Body:
    """Rebuilds tables and report from the commits, and uploads the packed logs of ``logs``."""
    owner = Owner.of(sweep)
    name = names.analysis_name(owner, generation)
    volumes = [base.config_map("input", INPUT_FOLDER, name)]
    command = ["goodput-analysis", "job", "--input", f"{INPUT_FOLDER}/{ANALYSIS_FILE}"]
    command += ["--logs", LOGS_FOLDER, "--message", TERMINATION_LOG]
    for trial in logs:
        # Optional: a trial whose logs could not be saved must not hold up the tables.
        source = names.logs_name(owner, trial)
        volumes.append(base.config_map(trial.name, f"{LOGS_FOLDER}/{trial.name}", source, optional=True))
    work = Work(
        name=name,
        labels=names.labels(owner, names.ANALYSIS, generation=str(generation), block=block or FINAL),
        container="analysis",
        image=image,
        command=command,
        volumes=volumes,
        resources=base.resources(Resources(), ANALYSIS_NEEDS),
        backoff=0,
        restart="Never",
        deadline_seconds=int(ANALYSIS_DEADLINE_SECONDS),
    )
    return job(sweep.spec, owner, work)


def analysis_input(sweep: Sweep, action: StartAnalysis) -> dict[str, bytes]:
    """The analysis's input file: where the results are, and the states that only the operator knows."""
    document = {
        "v": 1,
        "results": results_target(sweep).model_dump(mode="json"),
        "sweep": sweep.folder,
        "states": action.states.model_dump(mode="json", exclude_none=True),
        "block": action.block,
        "logs": [trial.name for trial in action.logs],
    }
    return {ANALYSIS_FILE: json.dumps(document, separators=(",", ":")).encode()}
