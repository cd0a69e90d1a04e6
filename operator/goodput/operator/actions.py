"""What the planner asks a driver to do. Every action is idempotent: doing it twice equals doing it once.

The order within one pass is free: an action is asked for only when what it needs has been seen.
An action that fails is simply asked for again at the next look.
"""

from __future__ import annotations

from dataclasses import dataclass

from goodput.analysis.schema.sweep import StatesDocument
from goodput.operator.observed import Failure
from goodput.operator.sweep import TrialId
from goodput.runner.contract import Outcome


@dataclass(frozen=True)
class StartCanary:
    """Write spec.json and check create-only with the runner's identity."""


@dataclass(frozen=True)
class Remember:
    """Create the trial's memory. Comes before its server."""

    trial: TrialId
    order: int


@dataclass(frozen=True)
class StartServer:
    """Start the server of a trial."""

    trial: TrialId


@dataclass(frozen=True)
class StartRunner:
    """Write trial.json (the server is Ready) and start the runner."""

    trial: TrialId


@dataclass(frozen=True)
class Note:
    """Add what was seen to the trial's memory; fields that are None stay as they are."""

    trial: TrialId
    server_running: float | None = None
    server_ready: float | None = None
    server_gone: float | None = None
    outcome: Outcome | None = None
    failure: Failure | None = None
    released: float | None = None
    ended: float | None = None
    interrupted: bool | None = None


@dataclass(frozen=True)
class StopRunner:
    """Ask the runner to void its cell, commit, and end (parallelism 0, or SIGTERM)."""

    trial: TrialId


@dataclass(frozen=True)
class SaveLogs:
    """Pack logs, events and descriptions of server and runner before anything is deleted.

    The memory's ``logs`` become ``saved``, or ``server`` where ``final`` is False: the server may go while the
    runner still uploads, whose log is then added by the final one.
    """

    trial: TrialId
    final: bool = True


@dataclass(frozen=True)
class StopServer:
    """Delete the server. Its trial is over only when no pod of it is left."""

    trial: TrialId


@dataclass(frozen=True)
class DropRunner:
    """Delete a runner that has ended."""

    trial: TrialId


@dataclass(frozen=True)
class StartAnalysis:
    """Rebuild tables and report from the commits, and upload saved logs."""

    generation: int
    block: str | None  # the block that ended; None at the end
    states: StatesDocument
    logs: tuple[TrialId, ...] = ()


@dataclass(frozen=True)
class DropLogs:
    """Forget the packed logs of a trial: analysis said they are in the store. ``logs`` become ``uploaded``."""

    trial: TrialId


@dataclass(frozen=True)
class CleanUp:
    """The sweep is terminal and its status says so: delete what is left of its children, memories too."""


Action = (
    StartCanary
    | Remember
    | StartServer
    | StartRunner
    | Note
    | StopRunner
    | SaveLogs
    | StopServer
    | DropRunner
    | StartAnalysis
    | DropLogs
    | CleanUp
)
