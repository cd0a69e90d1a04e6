"""From the bodies of a sweep's children to what the planner sees. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from goodput.operator.cluster import bodies, memory, names
from goodput.operator.cluster.bodies import Body
from goodput.operator.cluster.observe_runner import observe_runner
from goodput.operator.cluster.observe_server import observe_server
from goodput.operator.cluster.observe_task import observe_analysis, observe_canary
from goodput.operator.observed import Analysis, Canary, Failure, Observed, Runner, Server, Trial
from goodput.operator.sweep import TrialId
from goodput.runner.contract import RunnerStatus


@dataclass(frozen=True)
class Children:
    """Everything that carries the sweep's UID, by kind."""

    pods: Sequence[Body] = ()
    jobs: Sequence[Body] = ()
    deployments: Sequence[Body] = ()
    config_maps: Sequence[Body] = ()

    @property
    def any(self) -> bool:
        """Something is left of the sweep."""
        return bool(self.pods or self.jobs or self.deployments or self.config_maps)


@dataclass(frozen=True)
class Texts:
    """What is not in the bodies, by UID: logs of servers that ended, refusals from events, runners' live status."""

    logs: Mapping[str, str] = field(default_factory=dict)  # by pod
    refusals: Mapping[str, str] = field(default_factory=dict)  # by Job that has no pod
    live: Mapping[str, RunnerStatus] = field(default_factory=dict)  # by pod
    refused: Mapping[str, Failure] = field(default_factory=dict)  # by name of an object that was not taken
    refused_analyses: Mapping[int, Analysis] = field(default_factory=dict)


def observe(children: Children, status: Mapping[str, object], now: float, texts: Texts | None = None) -> Observed:
    """One look at all children of a sweep. A trial exists because its memory does."""
    known = texts or Texts()
    canary = _refused_canary(known, now)
    analyses: dict[int, Analysis] = dict(known.refused_analyses)
    pods = _by_job(children.pods)
    for job in children.jobs:
        role = bodies.labels(job).get(names.ROLE)
        own = pods.get(str(bodies.meta(job).get("name")), [])
        if role == names.CANARY:
            canary = observe_canary(job, own, now, known.refusals)
        elif role == names.ANALYSIS:
            generation = int(bodies.labels(job)[names.GENERATION])
            analyses[generation] = observe_analysis(job, own, now, known.refusals)
    return Observed(canary=canary, trials=_trials(children, now, known), analyses=analyses, status=status)


def _trials(children: Children, now: float, texts: Texts) -> dict[TrialId, Trial]:
    deployments = _by_trial(children.deployments, names.SERVER)
    servers = _by_trial(children.pods, names.SERVER)
    jobs = _by_trial(children.jobs, names.RUNNER)
    runners = _by_trial(children.pods, names.RUNNER)
    trials: dict[TrialId, Trial] = {}
    for trial, found in _by_trial(children.config_maps, names.MEMORY).items():
        notes = bodies.annotated(found[0])
        server = observe_server(
            next(iter(deployments.get(trial, ())), None),
            servers.get(trial, ()),
            expected=notes.get(names.SERVER_POD),
            now=now,
            logs=texts.logs,
        )
        if names.EXTERNAL in notes:  # nothing of it is ours: it is there as long as the trial uses it
            server = Server(state="ready", since=bodies.created(found[0]), url=notes[names.EXTERNAL])
        job = next(iter(jobs.get(trial, ())), None)
        runner = observe_runner(job, runners.get(trial, ()), now=now, texts=texts.refusals, live=texts.live)
        trials[trial] = _with_refusals(Trial(memory.read(found[0]), server, runner), found[0], texts)
    return trials


def _with_refusals(trial: Trial, config_map: Body, texts: Texts) -> Trial:
    """A server or a runner that the API server did not take is one that failed, until its trial has ended."""
    name = str(bodies.meta(config_map).get("name"))
    if trial.memory.ended is not None:
        return trial
    server, runner = texts.refused.get(name), texts.refused.get(f"{name}{names.RUNNER_SUFFIX}")
    if server is not None and trial.server is None:
        return replace(trial, server=Server(state="pending", since=trial.memory.created, failure=server))
    if runner is not None and trial.runner is None:
        return replace(trial, runner=Runner(state="failed", since=trial.memory.created, failure=runner))
    return trial


def _refused_canary(texts: Texts, now: float) -> Canary | None:
    failure = next((why for name, why in texts.refused.items() if name.endswith(names.CANARY_SUFFIX)), None)
    return Canary(state="failed", since=now, failure=failure) if failure else None


def _by_trial(found: Sequence[Body], role: str) -> dict[TrialId, list[Body]]:
    grouped: dict[TrialId, list[Body]] = {}
    for body in found:
        marks = bodies.labels(body)
        trial = names.trial_of(marks)
        if trial is not None and marks.get(names.ROLE) == role:
            grouped.setdefault(trial, []).append(body)
    return grouped


def _by_job(pods: Sequence[Body]) -> dict[str, list[Body]]:
    grouped: dict[str, list[Body]] = {}
    for pod in pods:
        job = bodies.labels(pod).get("batch.kubernetes.io/job-name")
        if job:
            grouped.setdefault(job, []).append(pod)
    return grouped
