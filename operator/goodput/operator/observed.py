"""What the planner sees: the children of one sweep, reduced to what decides. Times are Unix seconds.

Both drivers build it: the cluster driver from kopf's indexes, the local driver from processes and files.
Nothing here is remembered by the operator; a restarted operator sees the same.

What a driver promises: every action that it has executed shows in its next look (an index that lags behind
the driver's own writes is overlaid with them until it has caught up). Events may be lost, doubled, or late;
only this must not be: a server that was started and is not seen would not count against ``parallelism``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from goodput.analysis.schema.answer import AnalysisAnswer
from goodput.operator.sweep import TrialId
from goodput.runner.contract import Outcome, RunnerStatus


@dataclass(frozen=True)
class Failure:
    """Why something cannot go on. ``reason`` is one of `goodput.operator.reasons`."""

    reason: str
    message: str = ""


@dataclass(frozen=True)
class Memory:
    """The trial's ConfigMap: the trial exists because this does. It outlives server and runner."""

    order: int  # k-th server start of the sweep, from 1
    created: float
    server_running: float | None = None  # when the server's container was first seen running
    server_ready: float | None = None
    server_gone: float | None = None  # when no pod of it was left
    outcome: Outcome | None = None  # copied from the runner's termination message
    failure: Failure | None = None  # why the trial ended without (or beside) an outcome
    released: float | None = None  # the runner needs the server no longer (it may still be uploading)
    ended: float | None = None  # the decision to end it; server and runner are to go
    interrupted: bool = False  # ended by suspend, cancel or Ctrl-C: not a retry
    logs: Literal["none", "server", "saved", "uploaded"] = "none"  # "server": the runner's are still to come


@dataclass(frozen=True)
class Server:
    """The server of a trial. ``ended``: its container ended, whatever its exit code: a failure.

    ``stopping``: it was told to go and something of it (a pod, a process) is still there. A server of which
    nothing is left is None in `Trial`.
    """

    state: Literal["pending", "starting", "ready", "ended", "stopping"]
    since: float  # created
    failure: Failure | None = None  # classified: image, config, unschedulable, OOM, invalid args, ...
    waiting: Failure | None = None  # waits for capacity, quota or queue: not a failure yet
    scheduled: float | None = None  # a node was found; the start timeout does not count the wait before
    running: float | None = None
    ready: float | None = None
    url: str | None = None
    pod_uid: str | None = None
    image: str | None = None
    image_digest: str | None = None
    node: str | None = None


@dataclass(frozen=True)
class Runner:
    """The runner of a trial. ``finished``: it wrote an outcome; ``failed``: it will write none.

    ``stopping``: it was told to stop and is still there. A failure of a pending runner (image, quota) is
    reported as ``failed``.
    """

    state: Literal["pending", "running", "stopping", "finished", "failed"]
    since: float
    outcome: Outcome | None = None
    failure: Failure | None = None
    status: RunnerStatus | None = None  # live, may be missing


@dataclass(frozen=True)
class Trial:
    """All that exists of one trial attempt."""

    memory: Memory
    server: Server | None = None
    runner: Runner | None = None


@dataclass(frozen=True)
class Canary:
    """The preflight job. The driver ends it after `limits.CANARY_DEADLINE_SECONDS`."""

    state: Literal["running", "succeeded", "failed"]
    since: float
    failure: Failure | None = None


@dataclass(frozen=True)
class Analysis:
    """One analysis run. The driver ends it after `limits.ANALYSIS_DEADLINE_SECONDS`."""

    state: Literal["running", "succeeded", "failed"]
    since: float
    block: str | None  # as in `StartAnalysis`: the block that ended; None: the final one
    failure: Failure | None = None
    answer: AnalysisAnswer | None = None


@dataclass(frozen=True)
class Observed:
    """One look at everything that belongs to a sweep."""

    canary: Canary | None = None
    trials: Mapping[TrialId, Trial] = field(default_factory=dict)
    analyses: Mapping[int, Analysis] = field(default_factory=dict)  # by generation, from 1
    status: Mapping[str, object] = field(default_factory=dict)  # the CR's status as last written
