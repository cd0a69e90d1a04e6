"""What the Jobs of runner, canary and analysis share: identity, store, security."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from goodput.operator.cluster.manifests import base
from goodput.operator.cluster.manifests.base import Body
from goodput.operator.cluster.manifests.merge import merge_template
from goodput.operator.cluster.names import Owner
from goodput.operator.spec.models import SweepSpec

#: Parts of the runner's podTemplate that are about its own container and mean nothing to other Jobs.
_OWN: Final = frozenset({"containers", "initContainers", "volumes"})


@dataclass(frozen=True)
class Work:
    """One Job: what runs, with which files, for how long at most."""

    name: str
    labels: Mapping[str, str]
    container: str  # name of the container, as in podTemplate
    image: str
    command: Sequence[str]
    volumes: Sequence[tuple[Body, Body]]
    resources: Body
    backoff: int  # failed pods before the Job fails
    restart: str  # of the container in its pod: OnFailure or Never
    deadline_seconds: int
    grace_seconds: int = 30
    port: int | None = None
    annotations: Mapping[str, str] | None = None
    pod_annotations: Mapping[str, str] | None = None
    env: Sequence[Body] = ()


def job(spec: SweepSpec, owner: Owner, work: Work) -> Body:
    """The Job. It has the identity and the store's credentials that the sweep names, and no API token of its own.

    ``podReplacementPolicy: Failed``: a second pod is started only when the first has ended (DESIGN §4.1).
    """
    override = spec.runner.pod_template
    if override is not None and work.container != "runner":
        override = {**override, "spec": _without_containers(override.get("spec"))}
    template = merge_template(_template(spec, work), override)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": base.metadata(owner, work.name, work.labels, work.annotations),
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": work.backoff,
            "podReplacementPolicy": "Failed",
            "activeDeadlineSeconds": work.deadline_seconds,
            "template": template,
        },
    }


def _without_containers(spec: object) -> dict[str, Any]:
    found = spec if isinstance(spec, Mapping) else {}
    return {key: value for key, value in found.items() if key not in _OWN}


def _template(spec: SweepSpec, work: Work) -> Body:
    pairs = [base.empty_dir("tmp", base.TMP), *work.volumes]
    account = spec.results.service_account_name
    pod: Body = {
        "restartPolicy": work.restart,
        "enableServiceLinks": False,
        # A named account is there for its cloud identity, whose webhook brings a token of its own.
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": work.grace_seconds,
        "securityContext": dict(base.POD_SECURITY),
        "containers": [_container(spec, work, [mount for _, mount in pairs])],
        "volumes": [volume for volume, _ in pairs],
    }
    if account is not None:
        pod["serviceAccountName"] = account
    if spec.runner.node_selector:
        pod["nodeSelector"] = dict(spec.runner.node_selector)
    if spec.runner.tolerations:
        pod["tolerations"] = base.tolerations(spec.runner.tolerations)
    if spec.scheduling.priority_class_name is not None:
        pod["priorityClassName"] = spec.scheduling.priority_class_name
    meta: Body = {"labels": dict(work.labels)}
    if work.pod_annotations:
        meta["annotations"] = dict(work.pod_annotations)
    return {"metadata": meta, "spec": pod}


def _container(spec: SweepSpec, work: Work, mounts: list[Body]) -> Body:
    made: Body = {
        "name": work.container,
        "image": work.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(work.command),
        "env": [{"name": "HOME", "value": base.TMP}, *work.env],
        "resources": work.resources,
        "securityContext": dict(base.CONTAINER_SECURITY),
        # The answer is written to the termination log; where there is none, the end of the log says why.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    secret = spec.results.credentials_secret_ref
    if secret is not None:
        made["envFrom"] = [{"secretRef": {"name": secret.name}}]
    if work.port is not None:
        made["ports"] = [{"name": "metrics", "containerPort": work.port}]
    return made
