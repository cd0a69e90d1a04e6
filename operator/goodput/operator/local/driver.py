"""The local driver's loop: look, plan, act, until the sweep has ended or the user wants to go on later."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from goodput.operator import actions as do
from goodput.operator.actions import Action
from goodput.operator.local import recover
from goodput.operator.local.layout import Layout
from goodput.operator.local.lock import locked
from goodput.operator.local.wake import Wake
from goodput.operator.local.world import World
from goodput.operator.observed import Observed, Trial
from goodput.operator.plan import Plan, plan
from goodput.operator.plan.attempts import holds_slot, runner_active
from goodput.operator.plan.phase import TERMINAL
from goodput.operator.sweep import Sweep

STARTING_LOOK_SECONDS = 0.1
"""While a server starts: how often /health is asked. It bounds the time from ready to the first request."""

RUNNING_LOOK_SECONDS = 1.0
"""While a runner measures: for progress only, its end wakes the driver."""

FAILED_LOOK_SECONDS = 1.0
"""After an action that failed (a full disk, say)."""

_ENDS = ("Complete", "Failed")
_log = logging.getLogger(__name__)


class Watcher(Protocol):
    """Shows a person what happens."""

    def recovered(self, processes: int) -> None:
        """An earlier driver left processes; they were ended."""

    def looked(self, sweep: Sweep, observed: Observed, planned: Plan) -> None:
        """One pass."""

    def stopping(self) -> None:
        """The user asked to stop; what is measured is being kept."""


@dataclass(frozen=True)
class Ending:
    """How a run came to its end."""

    status: Mapping[str, Any]
    interrupted: bool  # by Ctrl-C or SIGTERM; running it again goes on

    @property
    def phase(self) -> str:
        """The sweep's phase."""
        return str(self.status.get("phase"))

    @property
    def why(self) -> str:
        """The reason of the phase, in words."""
        conditions = self.status.get("conditions", ())
        found = next((item for item in conditions if item["type"] in _ENDS and item["status"] == "True"), None)
        return "" if found is None else str(found["message"] or found["reason"])


def run(sweep: Sweep, folders: Layout, watcher: Watcher) -> Ending:
    """Drive a sweep to its end, or until SIGINT or SIGTERM; a second signal ends everything at once.

    Raises:
        BusyError: another driver works in the same folder.
    """
    with locked(folders.lock), Wake() as wake:
        watcher.recovered(recover.recover(folders, time.time()))
        if recover.ended_without_success(folders):
            recover.forgive(folders)
        world = World(sweep, folders)
        try:
            return _Loop(world, watcher, wake).run()
        finally:
            world.kill_all()


class _Loop:
    def __init__(self, world: World, watcher: Watcher, wake: Wake) -> None:
        self._world = world
        self._watcher = watcher
        self._wake = wake
        self._told = False

    def run(self) -> Ending:
        while True:
            sweep = self._sweep()
            observed = self._world.observe()
            planned = plan(sweep, observed, time.time())
            if planned.status != observed.status:
                self._world.write_status(planned.status)
            self._watcher.looked(sweep, observed, planned)
            if planned.status.get("phase") in TERMINAL:
                self._act(planned, observed)  # logs that are in the store by now
                return Ending(planned.status, interrupted=False)
            if self._wake.stops > 1 or (self._wake.stops and self._quiet(observed)):
                return Ending(planned.status, interrupted=True)
            self._wake.wait(self._act(planned, observed))

    def _sweep(self) -> Sweep:
        """The sweep as its spec stands: Ctrl-C is a wish to suspend."""
        sweep = self._world.sweep
        if self._wake.stops and not self._told:
            self._told = True
            self._watcher.stopping()
        suspend = self._wake.stops > 0
        return replace(sweep, spec=sweep.spec.model_copy(update={"suspend": suspend}))

    def _quiet(self, observed: Observed) -> bool:
        """Nothing runs that could lose a measurement; canary and analysis are started anew by the next run."""
        return not any(holds_slot(trial) or runner_active(trial) for trial in observed.trials.values())

    def _act(self, planned: Plan, observed: Observed) -> float:
        """Carry out the actions. Seconds until the next look."""
        done = 0
        for action in _apart(planned.actions, observed, stopping=self._wake.stops > 0):
            if not self._execute(action):
                return FAILED_LOOK_SECONDS
            done += 1
        if done:
            return 0.0
        return min(planned.next_look_seconds or 0.0, *map(_pace, observed.trials.values()), RUNNING_LOOK_SECONDS)

    def _execute(self, action: Action) -> bool:
        try:
            self._world.execute(action)
        except OSError as error:
            _log.error("%s: %s", type(action).__name__, error)  # the message says it all
            return False
        return True


def _apart(actions: Sequence[Action], observed: Observed, *, stopping: bool) -> list[Action]:
    """The actions for one machine: an analysis has it for itself, since it would disturb a measurement.

    A driver that is stopping starts no task: the next run does.
    """
    tasks = (do.StartCanary, do.StartAnalysis)
    if stopping:
        return [action for action in actions if not isinstance(action, tasks)]
    analysing = any(analysis.state == "running" for analysis in observed.analyses.values())
    if analysing or any(isinstance(action, do.StartAnalysis) for action in actions):
        return [action for action in actions if not isinstance(action, do.Remember | do.StartServer | do.StartRunner)]
    return list(actions)


def _pace(trial: Trial) -> float:
    starting = trial.server is not None and trial.server.state == "starting" and trial.runner is None
    return STARTING_LOOK_SECONDS if starting else RUNNING_LOOK_SECONDS
