"""What is there of one sweep on this machine, and how the planner's actions are carried out."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from typing import Any

import httpx

from goodput.operator import actions as do
from goodput.operator.actions import Action
from goodput.operator.local import commands, external, layout, logs, memories, tasks
from goodput.operator.local.errors import StartError
from goodput.operator.local.external import ExternalServer
from goodput.operator.local.facts import own_facts
from goodput.operator.local.gpus import gpus
from goodput.operator.local.gpuwait import GpuWait
from goodput.operator.local.layout import Layout
from goodput.operator.local.ports import Port
from goodput.operator.local.processes import Child, start
from goodput.operator.local.runners import LocalRunner
from goodput.operator.local.servers import LocalServer
from goodput.operator.local.tasks import Running
from goodput.operator.observed import Analysis, Canary, Failure, Memory, Observed, Trial
from goodput.operator.plan.limits import ANALYSIS_DEADLINE_SECONDS, CANARY_DEADLINE_SECONDS
from goodput.operator.sweep import Sweep, TrialId
from goodput.operator.trialplan import results_target, trial_plan
from goodput.runner.contract import CanaryInput, ServerFacts


class World:
    """The children of one sweep. What must outlive the driver is in files; processes do not outlive it."""

    def __init__(self, sweep: Sweep, folders: Layout) -> None:
        self.sweep = sweep
        self.folders = folders
        self.memories: dict[TrialId, Memory] = memories.load(folders)
        self._servers: dict[TrialId, LocalServer | ExternalServer] = {}
        self._runners: dict[TrialId, LocalRunner] = {}
        self._canary: Running | None = None
        self._analyses: dict[int, Running] = {}
        self._status: Mapping[str, Any] = json.loads(layout.read(folders.status) or b"{}")
        self._canary_end: Canary | None = None
        self._analysis_ends: dict[int, Analysis] = {}
        # One client: making one costs more than a request. No connection stays open at a server that is measured.
        self._gpus_before = {gpu.uuid: gpu.used_mib for gpu in gpus()} if any(c.gpus for c in sweep.configs) else {}
        self._client = httpx.Client(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))

    def observe(self) -> Observed:
        """One look."""
        return Observed(
            canary=self._look_canary(),
            trials={trial: self._trial(trial, memory) for trial, memory in self.memories.items()},
            analyses=self._look_analyses(),
            status=self._status,
        )

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Keep the status."""
        layout.write(self.folders.status, json.dumps(status, indent=1).encode())
        self._status = status

    def execute(self, action: Action) -> None:
        """Carry out one action."""
        match action:
            case do.StartCanary():
                given = CanaryInput(results=results_target(self.sweep), spec=self.sweep.document())
                folder = self.folders.canary
                self._canary = tasks.launch(
                    self.folders, folder, given.to_json(), commands.canary(folder), CANARY_DEADLINE_SECONDS
                )
            case do.StartServer(trial):
                self._start_server(trial)
            case do.StartRunner(trial):
                self._start_runner(trial)
            case do.StopRunner(trial):
                self._runners[trial].stop()
            case do.StopServer(trial):
                self._servers[trial].stop()
            case do.DropRunner(trial):
                self._runners.pop(trial).drop()
                shutil.rmtree(self.folders.trial(trial).spool, ignore_errors=True)
            case do.StartAnalysis():
                self._start_analysis(action)
            case do.CleanUp():
                pass  # files stay: a sweep that is run again goes on from them
            case _:
                self._keep(action)

    def _keep(self, action: do.Remember | do.Note | do.SaveLogs | do.DropLogs) -> None:
        memory = self.memories.get(action.trial)
        match action:
            case do.Remember(trial, order):
                self._remember(trial, memory or Memory(order=order, created=time.time()))
            case do.Note(trial) if memory is not None:
                self._remember(trial, memories.noted(memory, action))
            case do.SaveLogs(trial, final) if memory is not None:
                # Files stay, so they are packed for the analysis that takes them: with what a server writes at its end.
                self._remember(trial, memories.with_logs(memory, "saved" if final else "server"))
            case do.DropLogs(trial) if memory is not None:
                logs.drop(self.folders, trial)
                self._remember(trial, memories.with_logs(memory, "uploaded"))

    def kill_all(self) -> None:
        """End everything at once."""
        servers = [server.child for server in self._servers.values()]
        runners = [runner.child for runner in self._runners.values()]
        others = [running.child for running in (self._canary, *self._analyses.values()) if running is not None]
        for child in (*servers, *runners, *others):
            if child is not None:
                child.kill()
        self._client.close()

    def _remember(self, trial: TrialId, memory: Memory) -> None:
        memories.save(self.folders, trial, memory)
        self.memories[trial] = memory

    def _trial(self, trial: TrialId, memory: Memory) -> Trial:
        server, runner = self._servers.get(trial), self._runners.get(trial)
        return Trial(
            memory,
            server=None if server is None else server.look(),
            runner=None if runner is None else runner.look(),
        )

    def _look_canary(self) -> Canary | None:
        if self._canary_end is not None:
            return self._canary_end
        found = tasks.look_canary(self.folders.canary, self._canary)
        if found is not None and found.state != "running":
            self._canary_end = found
        return found

    def _look_analyses(self) -> dict[int, Analysis]:
        """Analyses that have ended stay as they are: their files are read once."""
        known = {int(path.name) for path in self.folders.analyses.glob("[0-9]*")} | self._analyses.keys()
        for generation in known - self._analysis_ends.keys():
            found = tasks.look_analysis(self.folders.analysis(generation), self._analyses.get(generation))
            if found is not None and found.state != "running":
                self._analysis_ends[generation] = found
        running = {
            generation: Analysis("running", task.since, task.block)
            for generation, task in self._analyses.items()
            if generation not in self._analysis_ends
        }
        return {**self._analysis_ends, **running}

    def _start_server(self, trial: TrialId) -> None:
        if self.sweep.address(trial.config) is not None:
            self._servers[trial] = self._external(trial)
            return
        folder, port = self.folders.trial(trial), Port()

        def launch() -> Child:
            command = commands.server(self.sweep, trial, port.number)
            environment = commands.server_environment(self.sweep, trial, folder)
            return start(command, folder.server_log, self.folders.processes, environment)

        wait = GpuWait(self._gpus_before, self.sweep.by_id[trial.config].gpus)
        self._servers[trial] = LocalServer(folder, port, time.time(), None, self._client, wait=wait, launch=launch)

    def _external(self, trial: TrialId) -> ExternalServer:
        """A server that is only used; one for which a key or an authority is missing here has failed."""
        url, now = self.sweep.address(trial.config) or "", time.time()
        try:
            self._facts(trial, url)
        except StartError as error:
            return ExternalServer(url, now, Failure("ContainerConfigError", str(error)))
        return ExternalServer(url, now)

    def _facts(self, trial: TrialId, url: str) -> ServerFacts:
        """Of an external server. Raises `StartError`."""
        engine = self.sweep.engines[self.sweep.by_id[trial.config].engine]
        return external.facts(engine, url, self.memories[trial].order)

    def _start_runner(self, trial: TrialId) -> None:
        folder, server, port = self.folders.trial(trial), self._servers[trial], Port()
        if isinstance(server, ExternalServer):
            facts = self._facts(trial, server.url)
        else:
            facts = own_facts(self.sweep, trial, folder, server, self.memories[trial].order)
        layout.write(folder.plan, trial_plan(self.sweep, trial, facts).to_json())
        now = time.time()
        try:
            command = commands.runner(folder, port.number)
            child = start(command, folder.runner_log, self.folders.processes, commands.own_environment())
        except StartError as error:
            failure = Failure("RunnerFailed", str(error))
            self._runners[trial] = LocalRunner(folder, port, now, None, self._client, failure)
        else:
            self._runners[trial] = LocalRunner(folder, port, now, child, self._client)

    def _start_analysis(self, action: do.StartAnalysis) -> None:
        given = {
            "v": 1,
            "results": results_target(self.sweep).model_dump(mode="json"),
            "sweep": self.sweep.folder,
            "states": action.states.model_dump(mode="json"),
            "block": action.block,
            "logs": [trial.name for trial in action.logs],
        }
        for trial in action.logs:
            logs.save(self.folders, trial)
        folder = self.folders.analysis(action.generation)
        command = commands.analysis(folder, self.folders.packs)
        self._analyses[action.generation] = tasks.launch(
            self.folders, folder, json.dumps(given).encode(), command, ANALYSIS_DEADLINE_SECONDS, block=action.block
        )
