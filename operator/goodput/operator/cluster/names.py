"""Names, labels and annotations of everything that the operator creates. All are deterministic.

A sweep's name has at most 40 characters and a trial's short name at most 18, so that the longest name
(``<sweep>-<trial>-run``) is a valid label value (63): the Job controller copies it into one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from goodput.operator.spec.models import API_VERSION, GROUP, KIND
from goodput.operator.sweep import Sweep, TrialId

PLURAL: Final = "benchmarksweeps"
FIELD_MANAGER: Final = "goodput-operator"
FINALIZER: Final = f"{GROUP}/active"

SWEEP: Final = f"{GROUP}/sweep"
SWEEP_UID: Final = f"{GROUP}/sweep-uid"
CONFIG: Final = f"{GROUP}/config"
BLOCK: Final = f"{GROUP}/block"
ATTEMPT: Final = f"{GROUP}/attempt"
TRIAL: Final = f"{GROUP}/trial"
ROLE: Final = f"{GROUP}/role"
GENERATION: Final = f"{GROUP}/generation"
FLAGS: Final = f"{GROUP}/flags"

# Roles: one value of the label ROLE for each kind of child.
SERVER: Final = "server"
RUNNER: Final = "runner"
CANARY: Final = "canary"
ANALYSIS: Final = "analysis"
MEMORY: Final = "memory"
LOGS: Final = "logs"
INPUT: Final = "input"

# Annotations of a trial's ConfigMap: the trial's memory.
ORDER: Final = f"{GROUP}/order"
SERVER_POD: Final = f"{GROUP}/server-pod"
EXTERNAL: Final = f"{GROUP}/external"  # URL of the server that the trial uses now
SERVER_RUNNING: Final = f"{GROUP}/server-running"
SERVER_READY: Final = f"{GROUP}/server-ready"
SERVER_GONE: Final = f"{GROUP}/server-gone"
OUTCOME: Final = f"{GROUP}/outcome"
FAILURE: Final = f"{GROUP}/failure"
RELEASED: Final = f"{GROUP}/released"
ENDED: Final = f"{GROUP}/ended"
INTERRUPTED: Final = f"{GROUP}/interrupted"
SAVED_LOGS: Final = f"{GROUP}/logs"

# Annotation of an analysis Job: its answer, which outlives its pod.
ANSWER: Final = f"{GROUP}/answer"

RUNNER_SUFFIX: Final = "-run"
LOGS_SUFFIX: Final = "-logs"
CANARY_SUFFIX: Final = "-canary"
TRIAL_FILE: Final = "trial.json"
RUNNER_PORT: Final = 9100


@dataclass(frozen=True)
class Owner:
    """The BenchmarkSweep that owns an object."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, sweep: Sweep) -> Owner:
        """The owner of a sweep's children."""
        return cls(sweep.namespace, sweep.name, sweep.uid)

    def reference(self) -> dict[str, object]:
        """The ownerReference: deleting the sweep deletes the child."""
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


def server_name(owner: Owner, trial: TrialId) -> str:
    """The server's Deployment."""
    return f"{owner.name}-{trial.name}"


def memory_name(owner: Owner, trial: TrialId) -> str:
    """The trial's ConfigMap: its memory, and later its plan."""
    return f"{owner.name}-{trial.name}"


def runner_name(owner: Owner, trial: TrialId) -> str:
    """The runner's Job."""
    return f"{owner.name}-{trial.name}{RUNNER_SUFFIX}"


def logs_name(owner: Owner, trial: TrialId) -> str:
    """The ConfigMap with the trial's packed logs."""
    return f"{owner.name}-{trial.name}{LOGS_SUFFIX}"


def canary_name(owner: Owner) -> str:
    """The canary's Job and its input."""
    return f"{owner.name}{CANARY_SUFFIX}"


def analysis_name(owner: Owner, generation: int) -> str:
    """The Job of one analysis run and its input."""
    return f"{owner.name}-analysis-{generation}"


def labels(owner: Owner, role: str, trial: TrialId | None = None, **more: str) -> dict[str, str]:
    """Labels of a child; ``more`` are further label keys without the group."""
    marks = {
        "app.kubernetes.io/managed-by": FIELD_MANAGER,
        "app.kubernetes.io/part-of": "goodput",
        "app.kubernetes.io/component": role,
        SWEEP: owner.name,
        SWEEP_UID: owner.uid,
        ROLE: role,
        **{f"{GROUP}/{key}": value for key, value in more.items()},
    }
    if trial is not None:
        marks |= {
            CONFIG: trial.config,
            BLOCK: trial.block,
            ATTEMPT: str(trial.attempt),
            TRIAL: trial.name,
        }
    return marks


def trial_of(found: Mapping[str, str]) -> TrialId | None:
    """The trial that an object's labels name, or None where it belongs to none."""
    try:
        return TrialId(block=found[BLOCK], config=found[CONFIG], attempt=int(found[ATTEMPT]))
    except (KeyError, ValueError):
        return None
