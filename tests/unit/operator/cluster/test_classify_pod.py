"""Why a pod does not start: what waits, what fails at once, what fails after a grace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goodput.operator.cluster import classify_pod
from goodput.operator.cluster.classify_pod import CONFIG_GRACE_SECONDS, PULL_GRACE_SECONDS, STRUCTURAL_GRACE_SECONDS

Body = dict[str, Any]
Make = Callable[..., Body]
SERVER = "server"


def waits(make_pod: Make, reason: str, message: str = "") -> Body:
    return make_pod(SERVER, {"state": {"waiting": {"reason": reason, "message": message}}})


def unscheduled(make_pod: Make, message: str) -> Body:
    return make_pod(SERVER, conditions={"PodScheduled": ("False", "Unschedulable", message)})


@pytest.mark.parametrize(
    ("reason", "grace", "expected"),
    [
        ("InvalidImageName", -1.0, "ImagePullFailed"),
        ("ErrImageNeverPull", -1.0, "ImagePullFailed"),
        ("ErrImagePull", PULL_GRACE_SECONDS, "ImagePullFailed"),
        ("ImagePullBackOff", PULL_GRACE_SECONDS, "ImagePullFailed"),
        ("CreateContainerConfigError", CONFIG_GRACE_SECONDS, "ContainerConfigError"),
        ("RunContainerError", CONFIG_GRACE_SECONDS, "ContainerConfigError"),
    ],
)
def test_a_waiting_container_fails_after_its_grace(
    reason: str, grace: float, expected: str, make_pod: Make, t0: float
) -> None:
    pod = waits(make_pod, reason, "why")
    if grace > 0:
        assert classify_pod.refused(pod, SERVER, t0 + grace) is None
    failure = classify_pod.refused(pod, SERVER, t0 + grace + 1)
    assert failure is not None
    assert (failure.reason, failure.message) == (expected, "why")


@pytest.mark.parametrize("message", ["429 Too Many Requests", "dial tcp: i/o timeout", "503 Service Unavailable"])
def test_a_busy_registry_is_waited_for(message: str, make_pod: Make, t0: float) -> None:
    pod = waits(make_pod, "ErrImagePull", message)
    assert classify_pod.refused(pod, SERVER, t0 + 10 * PULL_GRACE_SECONDS) is None


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_creating_is_no_failure(reason: str, make_pod: Make, t0: float) -> None:
    assert classify_pod.refused(waits(make_pod, reason), SERVER, t0 + 3600) is None


@pytest.mark.parametrize(
    "message",
    [
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/1 not helpful.",
        "0/3 nodes are available: 3 node(s) had untolerated taint {gpu: }.",
        "0/1 nodes are available: 1 node(s) had volume node affinity conflict.",
    ],
)
def test_what_no_node_can_ever_take_fails_once_an_autoscaler_had_its_time(
    message: str, make_pod: Make, t0: float
) -> None:
    pod = unscheduled(make_pod, message)
    assert classify_pod.refused(pod, SERVER, t0 + STRUCTURAL_GRACE_SECONDS - 1) is None
    failure = classify_pod.refused(pod, SERVER, t0 + STRUCTURAL_GRACE_SECONDS + 1)
    assert failure is not None
    assert (failure.reason, failure.message) == ("UnschedulableStructural", message)


@pytest.mark.parametrize(
    "message",
    [
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. no new claims to deallocate",
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint {master: }.",
        "0/1 nodes are available: 1 Too many pods.",
        "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.",
    ],
)
def test_capacity_is_waited_for(message: str, make_pod: Make, t0: float) -> None:
    pod = unscheduled(make_pod, message)
    assert classify_pod.refused(pod, SERVER, t0 + 86_400) is None
    waiting = classify_pod.waiting_for(pod)
    assert waiting is not None
    assert (waiting.reason, waiting.message) == ("WaitingForCapacity", message)


def test_an_unbound_claim_is_waited_for_as_a_volume(make_pod: Make) -> None:
    pod = unscheduled(make_pod, "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
    waiting = classify_pod.waiting_for(pod)
    assert waiting is not None
    assert waiting.reason == "VolumeNotReady"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("PreemptionByScheduler", "Preempted"),
        ("EvictionByEvictionAPI", "Evicted"),
        ("DeletionByTaintManager", "Evicted"),
        ("TerminationByKubelet", "Evicted"),
        ("DeletionByPodGC", "NodeLost"),
    ],
)
def test_disruptions(reason: str, expected: str, make_pod: Make) -> None:
    found = classify_pod.disrupted(make_pod(SERVER, conditions={"DisruptionTarget": ("True", reason, "m")}))
    assert found is not None
    assert found.reason == expected


def test_an_evicted_pod_without_conditions(make_pod: Make) -> None:
    pod = make_pod(SERVER, status={"phase": "Failed", "reason": "Evicted", "message": "low on memory"})
    found = classify_pod.disrupted(pod)
    assert found is not None
    assert (found.reason, found.message) == ("Evicted", "low on memory")


@pytest.mark.parametrize(
    ("state", "log", "expected"),
    [
        ({"reason": "OOMKilled", "exitCode": 137}, None, "HostOutOfMemory"),
        ({"reason": "StartError", "exitCode": 128, "message": 'exec: "vllm": not found'}, None, "ContainerConfigError"),
        (
            {"reason": "Error", "exitCode": 2, "message": "x: error: unrecognized: --y"},
            None,
            "InvalidServerArgs",
        ),
        ({"reason": "Error", "exitCode": 1}, "No available memory for the cache blocks.", "KvCacheTooSmall"),
        ({"reason": "Completed", "exitCode": 0}, "Shutting down", "ServerGone"),
    ],
)
def test_how_a_container_ended(state: Body, log: str | None, expected: str, make_pod: Make) -> None:
    found = classify_pod.ended(make_pod(SERVER, {"state": {"terminated": state}}), SERVER, log)
    assert found is not None
    assert found.reason == expected


def test_a_container_that_runs_has_not_ended(make_pod: Make) -> None:
    assert classify_pod.ended(make_pod(SERVER, {"state": {"running": {}}}), SERVER) is None
