"""The server of a trial: one Deployment with one pod."""

from __future__ import annotations

import math
from typing import Final

from goodput.operator.cluster import names
from goodput.operator.cluster.manifests import base
from goodput.operator.cluster.manifests.base import Body
from goodput.operator.cluster.manifests.merge import merge_template
from goodput.operator.cluster.names import Owner
from goodput.operator.spec.command import SERVER_PORT, SHUTDOWN_SECONDS
from goodput.operator.spec.engine import EngineSpec
from goodput.operator.sweep import Sweep, TrialId

#: Must exceed the shutdown timeout by 10 s, else the kubelet kills the server while it drains.
GRACE_SECONDS: Final = SHUTDOWN_SECONDS + 15
#: The Deployment gives up after the operator did: its own deadline is only a backstop.
PROGRESS_SLACK_SECONDS: Final = 300
GPU: Final = "nvidia.com/gpu"
CACHE: Final = "/cache"
MODELS: Final = "/models"
COMPILED: Final = "/compiled"


def server_deployment(sweep: Sweep, trial: TrialId, *, image: str) -> Body:
    """The Deployment. ``image`` is what the engine names, or the operator's default."""
    owner, engine = Owner.of(sweep), sweep.engines[sweep.by_id[trial.config].engine]
    labels = names.labels(owner, names.SERVER, trial)
    meta = base.metadata(owner, names.server_name(owner, trial), labels, {names.FLAGS: sweep.by_id[trial.config].label})
    template = merge_template(_template(sweep, trial, engine, image), engine.pod_template)
    template["metadata"]["labels"] |= labels  # the selector must match whatever the user's template says
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta,
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 0,
            "progressDeadlineSeconds": math.ceil(engine.startup_timeout_seconds) + PROGRESS_SLACK_SECONDS,
            "selector": {
                "matchLabels": {names.SWEEP_UID: owner.uid, names.TRIAL: trial.name, names.ROLE: names.SERVER}
            },
            "template": template,
        },
    }


def cache_claim(sweep: Sweep) -> str | None:
    """Name of the claim with the model's files, or None where the image or the hub has them."""
    return sweep.spec.model.cache.claim_name if sweep.spec.model.cache is not None else None


def _template(sweep: Sweep, trial: TrialId, engine: EngineSpec, image: str) -> Body:
    owner = Owner.of(sweep)
    volumes, mounts = _volumes(sweep, engine)
    spec: Body = {
        "restartPolicy": "Always",
        "enableServiceLinks": False,  # else a Service called "vllm" sets VLLM_PORT
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": dict(base.POD_SECURITY),
        "containers": [_container(sweep, trial, engine, image, mounts)],
        "volumes": volumes,
    }
    if engine.node_selector:
        spec["nodeSelector"] = dict(engine.node_selector)
    if engine.tolerations:
        spec["tolerations"] = base.tolerations(engine.tolerations)
    if engine.runtime_class_name is not None:
        spec["runtimeClassName"] = engine.runtime_class_name
    if sweep.spec.scheduling.priority_class_name is not None:
        spec["priorityClassName"] = sweep.spec.scheduling.priority_class_name
    annotations = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(SERVER_PORT),
        "prometheus.io/path": "/metrics",
    }
    return {"metadata": {"labels": names.labels(owner, names.SERVER, trial), "annotations": annotations}, "spec": spec}


def _container(sweep: Sweep, trial: TrialId, engine: EngineSpec, image: str, mounts: list[Body]) -> Body:
    config = sweep.by_id[trial.config]
    health = {"httpGet": {"path": "/health", "port": "http"}}
    asked = base.resources(engine.resources, {})
    if config.gpus and GPU not in asked.get("limits", {}):
        asked["limits"] = {**asked.get("limits", {}), GPU: str(config.gpus)}
    return {
        "name": "server",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(config.command),
        "env": _env(sweep, engine),
        "ports": [{"name": "http", "containerPort": SERVER_PORT}],
        "resources": asked,
        "securityContext": dict(base.CONTAINER_SECURITY),
        # No readiness probe: the container is ready as soon as the startup probe passed, and nothing else
        # asks it while it is measured. Liveness is lenient: it ends a server whose engine hangs.
        "startupProbe": {
            **health,
            "periodSeconds": 1,
            "timeoutSeconds": 2,
            "failureThreshold": max(1, math.ceil(engine.startup_timeout_seconds)),
        },
        "livenessProbe": {**health, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 12},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _env(sweep: Sweep, engine: EngineSpec) -> list[Body]:
    """Variables of ours, the user's over them; a value from a Secret is read by the kubelet alone."""
    made: dict[str, Body] = {"HOME": {"name": "HOME", "value": f"{CACHE}/home"}}
    if engine.loads_model:
        found = _hub_env(sweep) | (_vllm_env(engine) if engine.kind == "vllm" else {})
        made |= {name: {"name": name, "value": value} for name, value in found.items()}
        token = sweep.spec.model.token_secret_ref
        if token is not None:
            made["HF_TOKEN"] = base.secret_env("HF_TOKEN", token.name, token.key)
    for variable in engine.env:
        made[variable.name] = variable.model_dump(by_alias=True, exclude_none=True)
    return list(made.values())


def _hub_env(sweep: Sweep) -> dict[str, str]:
    cache = sweep.spec.model.cache
    found = {
        "USER": "goodput",  # the user has no entry in the image's passwd, and torch asks for its name
        "HF_HOME": MODELS if cache_claim(sweep) else f"{CACHE}/huggingface",
    }
    if cache is not None and cache.offline:
        found["HF_HUB_OFFLINE"] = "1"
    return found


def _vllm_env(engine: EngineSpec) -> dict[str, str]:
    found = {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_SERVER_DEV_MODE": "1",  # opens /reset_prefix_cache and /server_info
        "VLLM_CACHE_ROOT": f"{CACHE}/vllm",
    }
    if engine.compile_cache.claim_name is not None:
        found |= {"VLLM_CACHE_ROOT": f"{COMPILED}/vllm", "TORCHINDUCTOR_CACHE_DIR": f"{COMPILED}/inductor"}
    return found


def _volumes(sweep: Sweep, engine: EngineSpec) -> tuple[list[Body], list[Body]]:
    pairs = [base.empty_dir("tmp", base.TMP), base.empty_dir("cache", CACHE)]
    if engine.kind == "vllm":
        pairs.append(base.empty_dir("shm", "/dev/shm", medium="Memory"))  # noqa: S108  more than runc's 64 MiB
    claim_name = cache_claim(sweep)
    if claim_name is not None:
        pairs.append(base.claim("models", MODELS, claim_name))
    if engine.compile_cache.claim_name is not None:
        pairs.append(base.claim("compiled", COMPILED, engine.compile_cache.claim_name))
    return [volume for volume, _ in pairs], [mount for _, mount in pairs]
