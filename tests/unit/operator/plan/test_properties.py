"""`plan` in a small world that loses actions, repeats them, crashes the driver, and lets everything fail."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

from hypothesis import given, settings
from hypothesis import strategies as st

from goodput.analysis.schema.answer import AnalysisAnswer
from goodput.analysis.schema.base import PRIME
from goodput.analysis.schema.sweep import StatesDocument
from goodput.operator import actions as do
from goodput.operator.observed import Analysis, Canary, Failure, Memory, Observed, Runner, Server, Trial
from goodput.operator.plan import Plan, plan
from goodput.operator.reasons import REASONS
from goodput.operator.spec.compilekey import compile_key
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep, TrialId
from goodput.runner.contract import OpenCell, Outcome, RunnerStatus

SERVER_REASONS = tuple(name for name, r in REASONS.items() if r.kind in {"deterministic", "transient", "disruption"})
TERMINAL = {"Succeeded", "PartiallyFailed", "Failed", "Cancelled"}
CALM_AFTER = 400  # passes after which nobody interferes any more
LOOKS = 1500  # a sweep that takes more passes than this is held not to end


@cache
def base_sweep(budgets: int, rates: int, blocks: int, prime: bool = False, siblings: int = 1) -> Sweep:
    compiled = {"compileCache": {"mode": "prime", "claimName": "compiled"}} if prime else {}
    grid: dict[str, list[int]] = {"max_num_batched_tokens": [2 ** (8 + n) for n in range(budgets)]}
    if siblings > 1:
        grid["num_gpu_blocks_override"] = [2 ** (9 + n) for n in range(siblings)]  # no part of the compile key
    engine = {"name": "sim", "kind": "simulated", "args": {"max_num_seqs": 64}, **compiled}
    return resolve(
        {
            "apiVersion": "goodput.dev/v1alpha1",
            "kind": "BenchmarkSweep",
            "metadata": {"name": "world"},
            "spec": {
                "model": {"name": "toy"},
                "engines": [engine],
                "configs": {"grid": grid},
                "workload": {
                    "promptTokens": [64],
                    "outputTokens": [8],
                    "requestRate": [float(n + 1) for n in range(rates)],
                    "window": {"duration": "10s"},
                },
                "slo": {"ttft": "500ms"},
                "plan": {"blocks": {"min": blocks}},
                "results": {"uri": "s3://bucket/sweeps"},
            },
        },
        namespace="default",
        uid="0123456789abcdef",
    )


@dataclass
class World:
    """A cluster in miniature. ``trouble``: chance per tick that something of a trial goes wrong."""

    sweep: Sweep
    rng: random.Random
    trouble: float
    now: float = 1_000_000.0
    canary: Canary | None = None
    trials: dict[TrialId, Trial] = field(default_factory=dict)
    analyses: dict[int, Analysis] = field(default_factory=dict)
    status: dict[str, object] = field(default_factory=dict)
    results: set[tuple[str, str, str]] = field(default_factory=set)  # config, load, block
    commits: set[tuple[str, str, str, int]] = field(default_factory=set)
    final: StatesDocument | None = None
    logs: dict[int, tuple[str, ...]] = field(default_factory=dict)
    most_alive: int = 0
    cleaned: bool = False

    @property
    def loads(self) -> tuple[str, ...]:
        return tuple(step.load.id for step in self.sweep.loads)

    def observe(self) -> Observed:
        return Observed(self.canary, dict(self.trials), dict(self.analyses), dict(self.status))

    def update(self, trial_id: TrialId, **changes: object) -> None:
        self.trials[trial_id] = replace(self.trials[trial_id], **changes)  # type: ignore[arg-type]

    # What a driver does. Each refuses what a sound planner never asks for.

    def execute(self, action: do.Action, *, again: bool = False) -> None:  # noqa: PLR0912 - one case each
        match action:
            case do.StartCanary():
                assert again or self.canary is None
                self.canary = self.canary or Canary("running", self.now)
            case do.Remember(trial_id, order):
                assert again or trial_id not in self.trials
                self.trials.setdefault(trial_id, Trial(Memory(order=order, created=self.now)))
            case do.StartServer(trial_id):
                assert again or self.trials[trial_id].server is None
                if not trial_id.primes and not self.trials[trial_id].memory.ended:
                    self.after_primes(trial_id)
                if self.trials[trial_id].server is None:
                    self.update(trial_id, server=Server("pending", self.now))
            case do.StartRunner(trial_id):
                assert not trial_id.primes, "a start that fills the cache measures nothing"
                trial = self.trials[trial_id]
                assert trial.server is not None
                assert again or trial.runner is None
                if trial.runner is None:
                    self.update(trial_id, runner=Runner("pending", self.now))
            case do.Note():
                self.note(action)
            case do.StopRunner(trial_id):
                runner = self.trials[trial_id].runner
                assert again or (runner is not None and runner.state in {"pending", "running"})
                if runner is not None and runner.state in {"pending", "running"}:
                    self.update(trial_id, runner=replace(runner, state="stopping"))
            case do.SaveLogs(trial_id, final):
                memory = self.trials[trial_id].memory
                assert again or memory.logs in {"none", "server"}
                self.update(trial_id, memory=replace(memory, logs="saved" if final else "server"))
            case do.StopServer(trial_id):
                server = self.trials[trial_id].server
                assert again or (server is not None and server.state != "stopping")
                if server is not None:
                    self.update(trial_id, server=replace(server, state="stopping"))
            case do.DropRunner(trial_id):
                runner = self.trials[trial_id].runner
                assert again or (runner is not None and runner.state != "stopping")
                leaving = runner is not None and runner.outcome is not None  # its pod is seen for a while
                self.update(trial_id, runner=replace(runner, state="stopping") if runner and leaving else None)
            case do.StartAnalysis():
                self.start_analysis(action, again=again)
            case do.DropLogs(trial_id):
                memory = self.trials[trial_id].memory
                assert memory.logs == ("uploaded" if again else "saved")
                self.update(trial_id, memory=replace(memory, logs="uploaded"))
            case do.CleanUp():
                assert self.status["phase"] in TERMINAL
                self.canary, self.trials, self.analyses, self.cleaned = None, {}, {}, True

    def after_primes(self, trial_id: TrialId) -> None:
        """A measured server starts once nothing is left of the starts that fill the cache."""
        for other, trial in self.trials.items():
            assert not other.primes or trial.memory.server_gone is not None, f"{trial_id} before {other}"

    def note(self, note: do.Note) -> None:
        memory = self.trials[note.trial].memory
        changes = {k: v for k, v in vars(note).items() if k != "trial" and v is not None}
        assert changes, "an empty note"
        self.update(note.trial, memory=replace(memory, **changes))

    def start_analysis(self, action: do.StartAnalysis, *, again: bool) -> None:
        assert again or action.generation not in self.analyses
        if action.generation in self.analyses:
            return
        assert action.generation == max(self.analyses, default=0) + 1
        assert not any(analysis.state == "running" for analysis in self.analyses.values())
        self.analyses[action.generation] = Analysis("running", self.now, action.block)
        self.logs[action.generation] = tuple(trial_id.name for trial_id in action.logs)
        if action.block is None:
            self.final = action.states

    # What happens by itself.

    def tick(self) -> None:
        self.tick_tasks()
        for trial_id in list(self.trials):
            self.tick_server(trial_id)
            self.tick_runner(trial_id)
        alive = sum(trial.server is not None for trial in self.trials.values())
        self.most_alive = max(self.most_alive, alive)

    def tick_tasks(self) -> None:
        if self.canary is not None and self.canary.state == "running" and self.rng.random() < 0.7:
            self.canary = replace(self.canary, state="succeeded")
        for generation, analysis in self.analyses.items():
            if analysis.state == "running" and self.rng.random() < 0.5:
                failed = self.rng.random() < self.trouble
                answer = AnalysisAnswer(generation=generation, uploaded_logs=self.logs[generation])
                self.analyses[generation] = replace(
                    analysis, state="failed" if failed else "succeeded", answer=None if failed else answer
                )

    def tick_server(self, trial_id: TrialId) -> None:
        server = self.trials[trial_id].server
        if server is None or self.rng.random() < 0.3:
            return
        if server.state == "stopping" or self.rng.random() < self.trouble / 10:
            self.update(trial_id, server=None)  # gone; or deleted by someone
        elif self.rng.random() < self.trouble and server.state != "ended":
            failure = Failure(self.rng.choice(SERVER_REASONS)) if self.rng.random() < 0.8 else None
            self.update(trial_id, server=replace(server, state="ended", failure=failure))
        elif server.state == "pending" and self.rng.random() > self.trouble:
            self.update(trial_id, server=replace(server, state="starting", running=self.now))
        elif server.state == "starting":
            self.update(trial_id, server=replace(server, state="ready", ready=self.now))

    def tick_runner(self, trial_id: TrialId) -> None:
        trial = self.trials[trial_id]
        runner = trial.runner
        if runner is None or runner.state in {"finished", "failed"} or self.rng.random() < 0.2:
            return
        if self.rng.random() < self.trouble / 5:
            self.update(trial_id, runner=None if self.rng.random() < 0.3 else replace(runner, state="failed"))
        elif runner.state == "stopping" and runner.outcome is not None:
            self.update(trial_id, runner=None)
        elif runner.state == "stopping":
            self.finish(trial_id, "RunnerStopped")
        elif runner.state == "pending":
            self.update(trial_id, runner=replace(runner, state="running"))
        elif trial.server is None or trial.server.state != "ready":
            self.finish(trial_id, "ServerGone")
        else:
            self.measure(trial_id)

    def measure(self, trial_id: TrialId) -> None:
        """One load; then on, or the outcome."""
        missing = [
            load
            for load in self.loads
            if (trial_id.config, load, trial_id.block) not in self.results
            and (trial_id.config, load, trial_id.block, trial_id.attempt) not in self.commits
        ]
        if not missing:
            if self.rng.random() < self.trouble:
                runner = self.trials[trial_id].runner
                status = RunnerStatus(step="uploading", measuring=False, upload_error="403")
                assert runner is not None
                self.update(trial_id, runner=replace(runner, status=status))
            else:
                self.finish(trial_id, "ClientSaturated")
            return
        cell = (trial_id.config, missing[0], trial_id.block)
        assert cell not in self.results, "measured twice"
        self.commits.add((*cell, trial_id.attempt))
        if self.rng.random() > self.trouble:
            self.results.add(cell)

    def finish(self, trial_id: TrialId, reason: str) -> None:
        runner = self.trials[trial_id].runner
        assert runner is not None
        missing = [load for load in self.loads if (trial_id.config, load, trial_id.block) not in self.results]
        listed = missing[: self.rng.choice([len(missing), 1])]
        outcome = Outcome(
            planned=len(self.loads),
            valid=len(self.loads) - len(missing),
            open=tuple(OpenCell(load=load, outcome="void", reason=reason) for load in listed),
            more=len(missing) - len(listed),
        )
        self.update(trial_id, runner=replace(runner, state="finished", outcome=outcome))


@dataclass(frozen=True)
class Story:
    """What a world is like, and when people interfere (pass → what they do)."""

    seed: int
    budgets: int
    rates: int
    blocks: int
    parallelism: int
    retries: int
    trouble: float
    max_trials: int | None
    max_failed_configs: int | None
    deadline_seconds: float | None
    suspend_at: tuple[int, ...]
    cancel_at: int | None
    prime: bool = False
    siblings: int = 1  # configs of each compile key


stories = st.builds(
    Story,
    seed=st.integers(0, 2**32),
    budgets=st.integers(1, 4),
    rates=st.integers(1, 3),
    blocks=st.integers(1, 3),
    parallelism=st.integers(1, 3),
    retries=st.integers(0, 2),
    trouble=st.sampled_from([0.0, 0.02, 0.1, 0.3]),
    max_trials=st.none() | st.integers(1, 8),
    max_failed_configs=st.none() | st.integers(0, 2),
    deadline_seconds=st.none() | st.floats(60, 3000),
    suspend_at=st.lists(st.integers(0, CALM_AFTER - 50), max_size=3).map(tuple),
    cancel_at=st.none() | st.integers(0, CALM_AFTER),
    prime=st.booleans(),
    siblings=st.integers(1, 3),
)


def with_spec(story: Story, number: int) -> Sweep:
    """The sweep as its spec stands at a pass."""
    suspended = any(start <= number < start + 40 for start in story.suspend_at)
    cancelled = story.cancel_at is not None and number >= story.cancel_at
    return changed_sweep(story, suspended, cancelled)


@lru_cache(maxsize=8)
def changed_sweep(story: Story, suspended: bool, cancelled: bool) -> Sweep:
    sweep = base_sweep(story.budgets, story.rates, story.blocks, story.prime, story.siblings)
    spec = sweep.spec
    spec = spec.model_copy(
        update={
            "suspend": suspended,
            "cancel": cancelled,
            "plan": spec.plan.model_copy(update={"parallelism": story.parallelism, "retries": story.retries}),
            "budget": spec.budget.model_copy(
                update={
                    "max_trials": story.max_trials,
                    "max_failed_configs": story.max_failed_configs,
                    "deadline_seconds": story.deadline_seconds,
                }
            ),
        }
    )
    return replace(sweep, spec=spec)


def run(story: Story) -> tuple[World, Plan]:
    """Let the world turn until the planner says that nothing is left to do."""
    rng = random.Random(story.seed)
    world = World(with_spec(story, 0), rng, story.trouble)
    for number in range(LOOKS):
        sweep = with_spec(story, number)
        found = plan(sweep, world.observe(), world.now)
        if found.next_look_seconds is None:
            return world, found
        assert found.next_look_seconds >= 0
        for action in obeyed(found, rng):
            world.execute(action)
            if rng.random() < 0.05:
                world.execute(action, again=True)
        if rng.random() < 0.9:
            world.status = dict(found.status)
        world.now += min(found.next_look_seconds, rng.choice([0.1, 1.0, 10.0, 60.0])) + 0.01
        world.tick()
    raise AssertionError(f"no end: {world.status} {world.trials}")


def obeyed(found: Plan, rng: random.Random) -> Iterator[do.Action]:
    """The actions in any order; some are lost, as with an API error, and some passes end in a crash."""
    shuffled = list(found.actions)
    rng.shuffle(shuffled)
    crash = rng.randrange(len(shuffled) + 1) if rng.random() < 0.1 else len(shuffled)
    yield from (action for action in shuffled[:crash] if rng.random() < 0.95)


@settings(max_examples=60, deadline=None)
@given(stories)
def test_every_sweep_ends_with_every_cell_accounted_for(story: Story) -> None:
    world, last = run(story)
    status = last.status
    assert status["phase"] in TERMINAL
    assert world.most_alive <= story.parallelism
    assert world.cleaned or not world.final
    planned = {
        (config.id, load, block)
        for config in world.sweep.configs
        for load in world.loads
        for block in world.sweep.blocks
    }
    assert world.results <= planned
    if world.final is None:
        assert status["phase"] == "Cancelled", "only a sweep cancelled before its preflight ends without tables"
        return
    stated = [(cell.config, cell.load, cell.block) for cell in world.final.cells]
    assert len(stated) == len(set(stated)), "a cell has two states"
    assert planned - world.results <= set(stated), "a cell has neither result nor state"
    assert all(cell.reason for cell in world.final.cells)
    counts = status["counts"]
    assert isinstance(counts, dict)
    assert counts["pending"] == 0
    assert sum(counts[name] for name in ("measured", "void", "failed", "pruned", "notRun")) == len(planned)
    assert counts["measured"] <= len(world.results)
    assert any(trial.block == PRIME for trial in world.final.trials) <= story.prime


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    siblings=st.integers(1, 3),
    parallelism=st.integers(1, 3),
    retries=st.integers(0, 1),
    trouble=st.sampled_from([0.1, 0.3, 0.5]),
)
def test_a_key_is_filled_or_every_config_of_it_was_tried(
    seed: int, siblings: int, parallelism: int, retries: int, trouble: float
) -> None:
    story = Story(seed, 2, 1, 1, parallelism, retries, trouble, None, None, None, (), None, True, siblings)
    world, _ = run(story)
    assert world.final is not None
    unmeasurable = {cell.config for cell in world.final.cells if cell.state in {"failed", "pruned"}}
    ends: dict[str, list[str | None]] = {}
    for trial in world.final.trials:
        if trial.block == PRIME:
            ends.setdefault(trial.config, []).append(trial.reason)
    keys = {compile_key(config) for config in world.sweep.configs}
    assert len(keys) == 2
    for key in keys:
        group = [config.id for config in world.sweep.configs if compile_key(config) == key]
        filled = [config for config in group if None in ends.get(config, [])]
        assert len(filled) <= 1, "filled once is enough"
        tried = group[: group.index(filled[0])] if filled else group
        assert all(config in ends or config in unmeasurable for config in tried)
        assert not any(config in ends for config in group if config not in {*tried, *filled}), "one at a time"


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), budgets=st.integers(1, 4), parallelism=st.integers(1, 4))
def test_without_trouble_every_config_needs_one_server_per_block(seed: int, budgets: int, parallelism: int) -> None:
    story = Story(seed, budgets, 2, 2, parallelism, 0, 0.0, None, None, None, (), None)
    world, last = run(story)
    assert last.status["phase"] == "Succeeded"
    assert last.status["progress"] == f"{budgets * 4}/{budgets * 4}"
    counts = last.status["counts"]
    assert isinstance(counts, dict)
    assert counts["trials"] == budgets * 2
    assert len(world.commits) == budgets * 4


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), budgets=st.integers(1, 4), parallelism=st.integers(1, 4))
def test_without_trouble_every_compile_key_is_started_once_before_the_blocks(
    seed: int, budgets: int, parallelism: int
) -> None:
    story = Story(seed, budgets, 2, 2, parallelism, 0, 0.0, None, None, None, (), None, prime=True)
    world, last = run(story)
    assert last.status["phase"] == "Succeeded"
    assert last.status["progress"] == f"{budgets * 4}/{budgets * 4}"
    assert world.final is not None
    started = sorted(world.final.trials, key=lambda trial: trial.start_order or 0)
    assert [trial.block == PRIME for trial in started] == [True] * budgets + [False] * budgets * 2
