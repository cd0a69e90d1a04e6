"""What there is of a simulated sweep, and how the planner's actions are carried out on the virtual clock."""

from __future__ import annotations

from collections.abc import Mapping

from goodput.analysis.errors import AnalysisError
from goodput.analysis.schema.answer import AnalysisAnswer
from goodput.analysis.schema.provenance import StartLog
from goodput.analysis.store import StoreError
from goodput.operator import actions as do
from goodput.operator.actions import Action
from goodput.operator.local import memories
from goodput.operator.observed import Analysis, Canary, Failure, Memory, Observed, Trial
from goodput.operator.sweep import Sweep, TrialId
from goodput.operator.trialplan import trial_plan
from goodput.operator.virtual.engines import Simulator, StartRefusedError
from goodput.operator.virtual.results import Results
from goodput.operator.virtual.trials import URL, VirtualRunner, VirtualServer
from goodput.runner.contract import ServerFacts
from goodput.runner.virtual.trial import measure

BEGIN_SECONDS = 1.0
"""The clock's time when a sweep begins: 1970-01-01T00:00:01Z. Nobody takes it for a measurement's."""


class VirtualWorld:
    """The children of one sweep, all in memory.

    Attributes:
        now: the clock, seconds; stands for the wall clock. It moves in `pass_until` alone.
    """

    def __init__(self, sweep: Sweep, simulator: Simulator, results: Results) -> None:
        self.sweep, self.now = sweep, BEGIN_SECONDS
        self.status: Mapping[str, object] = {}
        self._simulator, self._results = simulator, results
        self._memories: dict[TrialId, Memory] = {}
        self._servers: dict[TrialId, VirtualServer] = {}
        self._runners: dict[TrialId, VirtualRunner] = {}
        self._compiles: dict[TrialId, bool | None] = {}
        self._canary: Canary | None = None
        self._analyses: dict[int, Analysis] = {}

    def observe(self) -> Observed:
        """One look."""
        return Observed(
            canary=self._canary,
            trials={trial: self._trial(trial, memory) for trial, memory in self._memories.items()},
            analyses=dict(self._analyses),
            status=self.status,
        )

    def pass_until(self, latest: float) -> None:
        """Move the clock to the next thing that happens by itself, at most to ``latest``."""
        times = [
            *(server.ready for server in self._servers.values() if server.engine is not None),
            *(runner.until for runner in self._runners.values() if runner.outcome is None),
        ]
        self.now = min((time for time in times if time > self.now), default=latest)
        self.now = min(self.now, latest)

    def execute(self, action: Action) -> None:
        """Carry out one action."""
        match action:
            case do.StartCanary():
                self._canary = self._preflight()
            case do.StartServer(trial):
                self._start_server(trial)
            case do.StartRunner(trial):
                self._start_runner(trial)
            case do.StopRunner(trial):
                self._runners[trial].stop()
            case do.StopServer(trial):
                self._servers[trial].dropped = True
            case do.DropRunner(trial):
                del self._runners[trial]
            case do.StartAnalysis():
                self._analyses[action.generation] = self._analyse(action)
            case do.CleanUp():
                pass  # nothing outlives this process
            case _:
                self._keep(action)

    def _keep(self, action: do.Remember | do.Note | do.SaveLogs | do.DropLogs) -> None:
        memory = self._memories.get(action.trial)
        match action:
            case do.Remember(trial, order):
                self._memories[trial] = memory or Memory(order=order, created=self.now)
            case do.Note(trial) if memory is not None:
                self._memories[trial] = memories.noted(memory, action)
            case do.SaveLogs(trial, final) if memory is not None:  # a simulated server has no log
                self._memories[trial] = memories.with_logs(memory, "uploaded" if final else "server")

    def _trial(self, trial: TrialId, memory: Memory) -> Trial:
        server, runner = self._servers.get(trial), self._runners.get(trial)
        return Trial(
            memory,
            server=None if server is None else server.look(self.now),
            runner=None if runner is None else runner.look(self.now),
        )

    def _preflight(self) -> Canary:
        try:
            self._results.begin(self.sweep)
        except StoreError as error:
            return Canary("failed", self.now, Failure(error.reason, str(error)))
        return Canary("succeeded", self.now)

    def _start_server(self, trial: TrialId) -> None:
        config = self.sweep.by_id[trial.config]
        compiles = self._compiles[trial] = self._simulator.compiles(config)
        ready = self.now + self._simulator.start_seconds(config, compiles=compiles)
        try:
            engine = self._simulator.start(config, ready)
        except StartRefusedError as error:
            self._servers[trial] = VirtualServer(self.now, ready, failure=error.failure)
        else:
            self._servers[trial] = VirtualServer(self.now, ready, engine)

    def _start_runner(self, trial: TrialId) -> None:
        server, config = self._servers[trial], self.sweep.by_id[trial.config]
        compiles = self._compiles[trial]
        facts = ServerFacts(
            url=URL,
            order=self._memories[trial].order,
            start_seconds=round(server.ready - server.since, 9),
            log=None if compiles is None else StartLog(compile_cache="miss" if compiles else "hit"),
        )
        plan = trial_plan(self.sweep, trial, facts)
        plan = plan.model_copy(
            update={"server": plan.server.model_copy(update={"expects": self._simulator.flags(config)})}
        )
        self._results.trial(plan)
        assert server.engine is not None
        cells = measure(plan, server.engine, simulated=self._simulator.describe(config))
        self._runners[trial] = VirtualRunner(plan, self.now, cells, self._results, self.now)

    def _analyse(self, action: do.StartAnalysis) -> Analysis:
        """Tables are written once, at the end, unless the next block depends on them: a race drops configs."""
        if action.block is not None and self.sweep.spec.plan.strategy != "race":
            answer = AnalysisAnswer(generation=action.generation, block=action.block)
            return Analysis("succeeded", self.now, action.block, answer=answer)
        try:
            answer = self._results.analyse(action.states, action.block)
        except AnalysisError as error:
            return Analysis("failed", self.now, action.block, Failure("AnalysisFailed", str(error)))
        return Analysis("succeeded", self.now, action.block, answer=answer)
