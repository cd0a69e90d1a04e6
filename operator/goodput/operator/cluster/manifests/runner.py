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
from goodput.operator.spec.engine import External
from goodput.operator.spec.external import secret_variable
from goodput.operator.sweep import LoadStep, Sweep, TrialId
from goodput.runner import expect
from goodput.runner.contract import ServerFacts, TrialPlan

TRIAL_FOLDER: Final = "/trial"
SPOOL: Final = "/spool"
CA_FOLDER: Final = "/ca"
CA_FILE: Final = "ca.pem"
#: Container restarts, each of which recovers the spool (DESIGN §4.1).
BACKOFF: Final = 3
#: Spool: about 300 bytes per read, one read per token (DESIGN §6); a request's prompt about 8 bytes per id.
EVENT_BYTES: Final = 300
PROMPT_TOKEN_BYTES: Final = 8
REQUEST_BYTES: Final = 1024
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
    env, volumes = _external(sweep, trial)
    work = Work(
        name=names.runner_name(owner, trial),
        labels=names.labels(owner, names.RUNNER, trial),
        container="runner",
        image=image,
        command=_command(storage - SLACK_BYTES),
        volumes=[
            base.config_map("trial", TRIAL_FOLDER, names.memory_name(owner, trial)),
            base.empty_dir("spool", SPOOL),
            *volumes,
        ],
        env=env,
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


def external_facts(external: External, url: str, order: int) -> ServerFacts:
    """What the runner needs to know of an external server; key and authority are in its pod (`_external`)."""
    key, authority = external.api_key_secret_ref, external.ca_secret_ref
    return ServerFacts(
        url=url,
        external=True,
        order=order,
        api_key_env=None if key is None else secret_variable(key),
        ca_file=None if authority is None else f"{CA_FOLDER}/{CA_FILE}",
    )


def _external(sweep: Sweep, trial: TrialId) -> tuple[list[Body], list[tuple[Body, Body]]]:
    """Environment and volumes for the key and the authority of an external server."""
    external = sweep.engines[sweep.by_id[trial.config].engine].external
    key = None if external is None else external.api_key_secret_ref
    authority = None if external is None else external.ca_secret_ref
    env = [] if key is None else [base.secret_env(secret_variable(key), key.name, key.key)]
    files = [] if authority is None else [base.secret_file("ca", CA_FOLDER, authority.name, authority.key, CA_FILE)]
    return env, files


def _command(spool_limit: int) -> list[str]:
    words = ["goodput-runner", "trial", "--plan", f"{TRIAL_FOLDER}/{names.TRIAL_FILE}", "--spool", SPOOL]
    return [*words, "--spool-limit", str(spool_limit), "--port", str(names.RUNNER_PORT)]


def spool_bytes(loads: Iterable[LoadStep]) -> int:
    """Ephemeral storage of the runner's pod, from the largest cell."""
    return BASE_BYTES + SPOOLED_CELLS * max((_cell_bytes(step) for step in loads), default=0)


def _cell_bytes(step: LoadStep) -> int:
    load = step.load
    prompt, output = expect.prompt_tokens(load), expect.output_tokens(load)
    requests = expect.most_requests(load, step.seconds + step.drain_seconds)
    per_request = output * EVENT_BYTES + prompt * PROMPT_TOKEN_BYTES + REQUEST_BYTES
    return math.ceil(requests * per_request)
