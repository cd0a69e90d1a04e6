"""A sweep, and bodies as the API server gives them, for tests of the cluster driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goodput.operator.cluster import bodies, names
from goodput.operator.cluster.names import Owner
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep, TrialId

Body = dict[str, Any]
UID = "0b0b0b0b-1111-2222-3333-444444444444"


def document(**changes: Any) -> Body:
    """A whole BenchmarkSweep; keyword arguments replace parts of its spec."""
    spec = {
        "model": {"name": "toy/model"},
        "engines": [{"name": "sim", "kind": "simulated", "args": {"max_model_len": 4096, "max_num_seqs": 64}}],
        "configs": {"grid": {"max_num_batched_tokens": [1024, 4096]}},
        "workload": {"promptTokens": [64], "outputTokens": [8], "requestRate": [4], "window": {"duration": "3s"}},
        "slo": {"ttft": "500ms"},
        "plan": {"blocks": {"min": 1}, "sentinel": "off"},
        "results": {"uri": "s3://bench/x", "credentialsSecretRef": {"name": "bench-s3"}},
        **changes,
    }
    meta = {"name": "t", "namespace": "ns", "uid": UID, "generation": 1, "resourceVersion": "1"}
    return {"apiVersion": "goodput.dev/v1alpha1", "kind": "BenchmarkSweep", "metadata": meta, "spec": spec}


def vllm_engine(**changes: Any) -> Body:
    return {
        "name": "vllm",
        "kind": "vllm",
        "image": "vllm/vllm-openai:v0.32.0",
        "args": {"max_model_len": 4096, "max_num_seqs": 64},
        "resources": {"limits": {"memory": "8Gi"}, "requests": {"cpu": "2"}},
        **changes,
    }


@pytest.fixture
def make_document() -> Callable[..., Body]:
    return document


@pytest.fixture
def make_sweep() -> Callable[..., Sweep]:
    def make(**changes: Any) -> Sweep:
        return resolve(document(**changes), namespace="ns", name="t", uid=UID)

    return make


@pytest.fixture
def make_vllm() -> Callable[..., Body]:
    return vllm_engine


@pytest.fixture
def sweep(make_sweep: Callable[..., Sweep]) -> Sweep:
    return make_sweep()


@pytest.fixture
def trial(sweep: Sweep) -> TrialId:
    return TrialId("0", sweep.configs[0].id, 1)


@pytest.fixture
def owner() -> Owner:
    return Owner("ns", "t", UID)


@pytest.fixture
def make_pod(owner: Owner, trial: TrialId) -> Callable[..., Body]:
    """A pod of the trial; ``container``: its container's status; ``conditions``: (status, reason, text) by type."""

    def make(
        role: str = names.SERVER,
        container: Body | None = None,
        conditions: dict[str, tuple[str, str, str]] | None = None,
        **changes: Any,
    ) -> Body:
        status: Body = {"phase": "Running", "podIP": "10.0.0.7"}
        if container is not None:
            status["containerStatuses"] = [{"name": role, "restartCount": 0, **container}]
        status["conditions"] = [
            {"type": kind, "status": value, "reason": reason, "message": text, "lastTransitionTime": at(20)}
            for kind, (value, reason, text) in (conditions or {}).items()
        ]
        status |= changes.pop("status", {})
        meta = {
            "name": f"{role}-pod",
            "namespace": "ns",
            "uid": changes.pop("uid", f"{role}-pod-uid"),
            "labels": names.labels(owner, role, trial),
            "creationTimestamp": at(0),
            "resourceVersion": "10",
            **changes.pop("metadata", {}),
        }
        if role == names.RUNNER:
            meta["labels"]["batch.kubernetes.io/job-name"] = names.runner_name(owner, trial)
        spec = {"nodeName": "node-1", "containers": [{"name": role, "image": "image:1"}]}
        return {"kind": "Pod", "metadata": meta, "spec": spec, "status": status, **changes}

    return make


@pytest.fixture
def make_child(owner: Owner, trial: TrialId) -> Callable[..., Body]:
    """Any other child of the trial."""

    def make(kind: str, role: str, name: str, **changes: Any) -> Body:
        meta = {
            "name": name,
            "namespace": "ns",
            "uid": f"{kind}-{name}",
            "labels": names.labels(owner, role, None if role in (names.CANARY, names.ANALYSIS) else trial),
            "creationTimestamp": at(0),
            "resourceVersion": "5",
            **changes.pop("metadata", {}),
        }
        return {"kind": kind, "metadata": meta, **changes}

    return make


def at(seconds: int) -> str:
    """A moment of the test's clock, which begins at T0."""
    return f"2026-11-30T06:{seconds // 60:02d}:{seconds % 60:02d}Z"


@pytest.fixture(name="at")
def moment() -> Callable[[int], str]:
    return at


@pytest.fixture
def t0() -> float:
    found = bodies.seconds(at(0))
    assert found is not None
    return found
