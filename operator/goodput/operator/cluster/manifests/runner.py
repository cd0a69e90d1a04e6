"""The runner of a trial: one Job with one pod, whose container may be restarted and then recovers its spool."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from goodput.operator.cluster import names
from goodput.operator.cluster.manifests import base
from goodput.operator.cluster.manifests.base import Body
from goodput.operator.cluster.manifests.job import Work, job
from goodput.operator.cluster.names import Owner
from goodput.operator.plan.limits import RUNNER_BACKSTOP_SECONDS, RUNNER_GRACE_SECONDS
from goodput.operator.sweep import LoadStep, Sweep, TrialId
from goodput.runner import expect
from goodput.runner.contract import TrialPlan

TRIAL_FOLDER: Final = "/trial"
SPOOL: Final = "/spool"
#: Container restarts, each of which recovers the spool (DESIGN §4.1).
BACKOFF: Final = 3
#: Spool: about 300 bytes per read, one read per token (DESIGN §6); a request's prompt about 8 bytes per id.
EVENT_BYTES: Final = 300
PROMPT_TOKEN_BYTES: Final = 8
REQUEST_BYTES: Final = 1024
#: A closed loop's rate is not known beforehand: no stream is expected to be faster than this.
STREAM_TOKENS_PER_SECOND: Final = 200.0
#: Cells that may wait in the spool while the store refuses.
SPOOLED_CELLS: Final = 4
BASE_BYTES: Final = 256 << 20
#: Of the pod's storage not for the spool: logs, temporary files.
SLACK_BYTES: Final = 128 << 20
#: A whole CPU: the kernel shares by requests, and a client that waits for its turn sends late.
DEFAULTS: Final = {"requests": {"cpu": "1", "memory": "256Mi"}}


def runner_job(sweep: Sweep, trial: TrialId, plan: TrialPlan, *, image: str) -> Body:
    """The Job. The trial's ConfigMap must have ``trial.json`` before."""
    owner = Owner.of(sweep)
    resources = base.resources(sweep.spec.runner.resources, DEFAULTS)
    storage = spool_bytes(sweep.loads)
    for kind in ("requests", "limits"):
        resources[kind] = {"ephemeral-storage": str(storage), **resources.get(kind, {})}
    deadline = plan.deadline_seconds + plan.upload_hold_seconds + 2 * RUNNER_BACKSTOP_SECONDS
    work = Work(
        name=names.runner_name(owner, trial),
        labels=names.labels(owner, names.RUNNER, trial),
        container="runner",
        image=image,
        command=_command(storage - SLACK_BYTES),
        volumes=[
            base.config_map("trial", TRIAL_FOLDER, names.memory_name(owner, trial)),
            base.empty_dir("spool", SPOOL),
        ],
        resources=resources,
        backoff=BACKOFF,
        restart="OnFailure",
        deadline_seconds=math.ceil(deadline),
        grace_seconds=math.ceil(RUNNER_GRACE_SECONDS),
        port=names.RUNNER_PORT,
        pod_annotations={
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(names.RUNNER_PORT),
            "prometheus.io/path": "/metrics",
        },
    )
    return job(sweep.spec, owner, work)


def _command(spool_limit: int) -> list[str]:
    words = ["goodput-runner", "trial", "--plan", f"{TRIAL_FOLDER}/{names.TRIAL_FILE}", "--spool", SPOOL]
    return [*words, "--spool-limit", str(spool_limit), "--port", str(names.RUNNER_PORT)]


def spool_bytes(loads: Iterable[LoadStep]) -> int:
    """Ephemeral storage of the runner's pod, from the largest cell."""
    return BASE_BYTES + SPOOLED_CELLS * max((_cell_bytes(step) for step in loads), default=0)


def _cell_bytes(step: LoadStep) -> int:
    load = step.load
    seconds = step.seconds + step.drain_seconds
    prompt, output = expect.prompt_tokens(load), expect.output_tokens(load)
    rate = expect.requests_per_second(load)
    if load.arrival == "burst":
        requests = float(load.window_requests or 0)
    elif rate is not None:
        requests = rate * seconds
    else:
        requests = (load.concurrency or 1) * seconds * STREAM_TOKENS_PER_SECOND / output
    per_request = output * EVENT_BYTES + prompt * PROMPT_TOKEN_BYTES + REQUEST_BYTES
    return math.ceil(requests * per_request)
