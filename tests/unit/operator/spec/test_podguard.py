from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.podguard import guard
from goodput.operator.spec.resolve import resolve


def fields(template: dict[str, Any]) -> list[str]:
    return [problem.field for problem in guard("t", template, "server")]


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        ({"hostNetwork": True}, "t.spec.hostNetwork"),
        ({"hostPID": True}, "t.spec.hostPID"),
        ({"hostIPC": True}, "t.spec.hostIPC"),
        ({"nodeName": "n1"}, "t.spec.nodeName"),
        ({"serviceAccountName": "admin"}, "t.spec.serviceAccountName"),
        ({"serviceAccount": "admin"}, "t.spec.serviceAccount"),
        ({"automountServiceAccountToken": True}, "t.spec.automountServiceAccountToken"),
        ({"restartPolicy": "Never"}, "t.spec.restartPolicy"),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "t.spec.volumes[0].hostPath"),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "t.spec.volumes[0].projected.sources",
        ),
        ({"securityContext": {"runAsUser": 0}}, "t.spec.securityContext.runAsUser"),
        ({"securityContext": {"fsGroup": 0}}, "t.spec.securityContext.fsGroup"),
        ({"securityContext": {"supplementalGroups": [5, 0]}}, "t.spec.securityContext.supplementalGroups"),
        ({"securityContext": {"runAsNonRoot": False}}, "t.spec.securityContext.runAsNonRoot"),
        ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, "t.spec.securityContext.seccompProfile.type"),
        (
            {"containers": [{"name": "side", "securityContext": {"privileged": True}}]},
            "t.spec.containers[0].securityContext.privileged",
        ),
        (
            {"initContainers": [{"name": "i", "securityContext": {"allowPrivilegeEscalation": True}}]},
            "t.spec.initContainers[0].securityContext.allowPrivilegeEscalation",
        ),
        (
            {"containers": [{"name": "server", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]},
            "t.spec.containers[0].securityContext.capabilities.add",
        ),
        (
            {"containers": [{"name": "server", "securityContext": {"procMount": "Unmasked"}}]},
            "t.spec.containers[0].securityContext.procMount",
        ),
        (
            {"securityContext": {"windowsOptions": {"hostProcess": True}}},
            "t.spec.securityContext.windowsOptions.hostProcess",
        ),
        ({"containers": [{"name": "side", "ports": [{"hostPort": 80}]}]}, "t.spec.containers[0].ports"),
        ({"containers": [{"name": "server", "args": ["--port", "1"]}]}, "t.spec.containers[0].args"),
        ({"containers": [{"name": "server", "image": "x"}]}, "t.spec.containers[0].image"),
        ({"ephemeralContainers": []}, "t.spec.ephemeralContainers"),
    ],
)
def test_refused(pod: dict[str, Any], field: str) -> None:
    assert fields({"spec": pod}) == [field]


def test_keys_of_the_operator_and_unknown_parts_are_refused() -> None:
    template = {"metadata": {"labels": {"goodput.dev/sweep": "x"}, "name": "y"}, "status": {}}
    assert fields(template) == ["t.status", "t.metadata.name", "t.metadata.labels.goodput.dev/sweep"]


def test_what_stays_in_the_pod_is_allowed() -> None:
    template = {
        "metadata": {"labels": {"team": "search"}, "annotations": {"sidecar.istio.io/inject": "false"}},
        "spec": {
            "hostNetwork": False,
            "hostUsers": False,
            "hostname": "server",
            "automountServiceAccountToken": False,
            "imagePullSecrets": [{"name": "registry"}],
            "securityContext": {"runAsUser": 1000, "runAsNonRoot": True, "fsGroup": 1000},
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}],
            "containers": [{"name": "server", "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}],
        },
    }
    assert fields(template) == []


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ({"spec": []}, ["t.spec"]),
        ({"spec": {"containers": "x"}}, ["t.spec.containers"]),
        ({"spec": {"volumes": ["x"]}}, ["t.spec.volumes"]),
        ({"metadata": 3}, ["t.metadata"]),
        ({"spec": None}, []),
    ],
)
def test_templates_of_a_wrong_shape_are_refused(template: dict[str, Any], found: list[str]) -> None:
    assert fields(template) == found


def test_both_templates_of_a_sweep_are_checked(sweep: Callable[..., dict[str, Any]]) -> None:
    bad = {"spec": {"hostPID": True}}
    engine = {"name": "a", "kind": "vllm", "image": "i", "podTemplate": bad}
    with pytest.raises(SpecError) as refused:
        resolve(sweep(engines=[engine], runner={"podTemplate": bad}))
    assert [problem.field for problem in refused.value.problems] == [
        "spec.engines[0].podTemplate.spec.hostPID",
        "spec.runner.podTemplate.spec.hostPID",
    ]
