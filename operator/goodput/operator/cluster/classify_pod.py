"""From a pod's status to a reason: why it cannot start, what it waits for, how it ended.

Sources of the texts: kubelet and scheduler of Kubernetes 1.34; the list of signals is DESIGN §9's.
"""

from __future__ import annotations

import re
from typing import Final

from goodput.operator.classify import classify_log
from goodput.operator.cluster import bodies
from goodput.operator.cluster.bodies import Body
from goodput.operator.observed import Failure

PULL_GRACE_SECONDS: Final = 60.0
"""A registry may answer badly once; the kubelet tries again with growing pauses."""
CONFIG_GRACE_SECONDS: Final = 20.0
"""A Secret applied together with the sweep may come a moment later."""
STRUCTURAL_GRACE_SECONDS: Final = 120.0
"""An autoscaler may bring a node that fits."""
VOLUME_GRACE_SECONDS: Final = 300.0
"""Volumes are attached and mounted before any container starts."""

_PULL: Final = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"})
_PULL_NEVER: Final = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_CONFIG: Final = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_BUSY_REGISTRY: Final = re.compile(r"\b(429|50[0-4])\b|too ?many ?requests|timeout|temporarily", re.IGNORECASE)
_STRUCTURAL: Final = re.compile(
    r"node affinity/selector|untolerated taint|volume node affinity|didn't match (pod|Pod)|unsupported architecture"
)
_CAPACITY: Final = re.compile(
    r"[Ii]nsufficient |[Tt]oo many pods|didn't have free ports|pod anti-affinity|topology spread|"
    r"node\.kubernetes\.io/(not-ready|unreachable|disk-pressure|memory-pressure|pid-pressure|unschedulable)|"
    r"node\(s\) were unschedulable|no nodes available"
)
_VOLUME: Final = re.compile(r"[Pp]ersistent[Vv]olume|persistentvolumeclaim|volume")
_DISRUPTIONS: Final = {
    "PreemptionByScheduler": "Preempted",
    "PreemptionByKubeScheduler": "Preempted",
    "EvictionByEvictionAPI": "Evicted",
    "DeletionByTaintManager": "Evicted",
    "TerminationByKubelet": "Evicted",
    "DeletionByPodGC": "NodeLost",
}
_STATUS_REASONS: Final = {
    "Evicted": "Evicted",
    "NodeLost": "NodeLost",
    "NodeShutdown": "Evicted",
    "Preempting": "Preempted",
}


def disrupted(pod: Body) -> Failure | None:
    """The cluster took the pod away: eviction, preemption, a lost node."""
    target = bodies.condition(pod, "DisruptionTarget")
    if target is not None and target.get("status") == "True":
        return Failure(_DISRUPTIONS.get(str(target.get("reason")), "Evicted"), str(target.get("message", "")))
    evicted = bodies.condition(pod, "TerminationTarget")  # Kueue's
    if evicted is not None and evicted.get("status") == "True":
        return Failure("Preempted", str(evicted.get("message", "")))
    reason = _STATUS_REASONS.get(str(bodies.status(pod).get("reason")))
    return Failure(reason, str(bodies.status(pod).get("message", ""))) if reason else None


def ended(pod: Body, container: str, log: str | None = None) -> Failure | None:
    """How the container ended, or None where it never did. Its exit code decides nothing: a server must not end.

    ``log`` is its log, where it could be read; without it the end of the log that the kubelet kept.
    """
    last = bodies.terminated(pod, container)
    if last is None and bodies.status(pod).get("phase") in ("Failed", "Succeeded"):
        return Failure("ServerGone", str(bodies.status(pod).get("message", "")))
    if last is None:
        return None
    reason, tail = str(last.get("reason", "")), str(last.get("message", ""))
    if reason == "OOMKilled":
        return Failure("HostOutOfMemory", "the container was killed at its memory limit")
    if reason in ("StartError", "ContainerCannotRun"):
        return Failure("ContainerConfigError", tail)
    known = classify_log(log or tail)
    if known is not None:
        return known
    line = next((line for line in reversed((log or tail).splitlines()) if line.strip()), "")
    return Failure("ServerGone", f"the container ended with exit code {last.get('exitCode')}: {line.strip()}"[:512])


def refused(pod: Body, container: str, now: float) -> Failure | None:
    """Why the pod will not start, once waiting longer would not help."""
    waiting = (bodies.container_status(pod, container).get("state") or {}).get("waiting") or {}
    reason, message = str(waiting.get("reason", "")), str(waiting.get("message", ""))
    age = now - (scheduled(pod) or bodies.created(pod))
    if reason in _PULL_NEVER:
        return Failure("ImagePullFailed", message or reason)
    if reason in _PULL and age > PULL_GRACE_SECONDS and not _BUSY_REGISTRY.search(message):
        return Failure("ImagePullFailed", message or reason)
    if reason in _CONFIG and age > CONFIG_GRACE_SECONDS:
        return Failure("ContainerConfigError", message or reason)
    unmounted = bodies.condition(pod, "PodReadyToStartContainers")
    if unmounted is not None and unmounted.get("status") == "False" and age > VOLUME_GRACE_SECONDS:
        return Failure("VolumeNotReady", f"volumes or network of the pod are not ready after {age:.0f} s")
    text = _unschedulable(pod)
    if text and _structural(text) and now - bodies.created(pod) > STRUCTURAL_GRACE_SECONDS:
        return Failure("UnschedulableStructural", text)
    return None


def waiting_for(pod: Body) -> Failure | None:
    """What an unscheduled pod waits for: capacity, a queue, a volume. Not a failure yet."""
    text = _unschedulable(pod)
    if text is None:
        return None
    volume = _VOLUME.search(text) and not _CAPACITY.search(text)
    return Failure("VolumeNotReady" if volume else "WaitingForCapacity", text)


def not_created(message: str) -> tuple[Failure | None, Failure | None]:
    """Why a controller could not create its pod: (failure, waiting), one of them None.

    The message is the Deployment's ReplicaFailure condition or a FailedCreate event: there is no pod to look at.
    """
    if "exceeded quota" in message:
        return None, Failure("QuotaExceeded", message)
    if "failed calling webhook" in message or "being terminated" in message:
        return None, Failure("WaitingForCapacity", message)
    return Failure("PodRefused", message), None


def scheduled(pod: Body) -> float | None:
    """When a node was found."""
    found = bodies.condition(pod, "PodScheduled")
    if found is None or found.get("status") != "True":
        return None
    return bodies.seconds(found.get("lastTransitionTime")) or bodies.created(pod)


def _unschedulable(pod: Body) -> str | None:
    found = bodies.condition(pod, "PodScheduled")
    if found is None or found.get("status") == "True":
        return None
    return str(found.get("message") or found.get("reason") or "not scheduled yet")


def _structural(text: str) -> bool:
    """All that speaks against the nodes lasts: one that is only full may become free."""
    return bool(_STRUCTURAL.search(text)) and not _CAPACITY.search(text)
