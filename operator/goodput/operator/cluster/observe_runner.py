"""The runner of a trial: a Job and its pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from goodput.operator.cluster import bodies, classify_pod, memory
from goodput.operator.cluster.bodies import Body
from goodput.operator.observed import Failure, Runner
from goodput.runner.contract import Outcome, RunnerStatus

CONTAINER = "runner"


def observe_runner(
    job: Body | None,
    pods: Sequence[Body],
    *,
    now: float,
    texts: Mapping[str, str],
    live: Mapping[str, RunnerStatus],
) -> Runner | None:
    """The runner as the planner sees it, or None where nothing of it is left. ``texts``: refusals by Job."""
    if job is None and not pods:
        return None
    outcome = outcome_of(pods)
    if job is None or bodies.deleting(job):
        return Runner(state="stopping", since=bodies.created(job or pods[0]), outcome=outcome)
    since = bodies.created(job)
    if outcome is not None:
        return Runner(state="finished", since=since, outcome=outcome)
    failure = job_failure(job, pods)
    if failure is not None:
        return Runner(state="failed", since=since, failure=failure)
    present = [pod for pod in pods if not _over(pod)]
    if job.get("spec", {}).get("parallelism") == 0:
        return Runner(state="stopping" if present else "failed", since=since)
    return _at_work(job, present, now, texts, live)


def outcome_of(pods: Sequence[Body]) -> Outcome | None:
    """The outcome that a runner wrote into its termination message."""
    for pod in pods:
        last = (bodies.container_status(pod, CONTAINER).get("state") or {}).get("terminated")
        found = memory.outcome(str(last.get("message", ""))) if last else None
        if found is not None:
            return found
    return None


def job_failure(job: Body, pods: Sequence[Body]) -> Failure | None:
    """Why the Job will write no outcome: it failed, or it is complete without one."""
    failed = next((kind for kind in ("Failed", "FailureTarget") if bodies.holds(job, kind)), None)
    if failed is None and not bodies.holds(job, "Complete"):
        return None
    for pod in pods:
        gone = classify_pod.disrupted(pod)
        if gone is not None:
            return gone
    end = next((last for pod in pods if (last := bodies.terminated(pod, CONTAINER)) is not None), None)
    words = bodies.condition(job, failed or "Complete") or {}
    message = str(words.get("message", ""))
    if end is not None:
        tail = str(end.get("message", "")).strip().splitlines()[-1:]
        message = f"exit code {end.get('exitCode')} ({end.get('reason')}): {' '.join(tail)}; {message}"
    return Failure("RunnerFailed", message[:512])


def _at_work(
    job: Body, present: Sequence[Body], now: float, texts: Mapping[str, str], live: Mapping[str, RunnerStatus]
) -> Runner:
    since = bodies.created(job)
    pod = max((one for one in present if not bodies.deleting(one)), key=bodies.created, default=None)
    if pod is None:
        return _without_pod(job, since, present, texts)
    refused = classify_pod.refused(pod, CONTAINER, now)
    if refused is not None:
        return Runner(state="failed", since=since, failure=refused)
    started = bodies.container_status(pod, CONTAINER).get("started") or _ran(pod)
    return Runner(state="running" if started else "pending", since=since, status=live.get(bodies.uid(pod)))


def _without_pod(job: Body, since: float, leaving: Sequence[Body], texts: Mapping[str, str]) -> Runner:
    refusal = texts.get(bodies.uid(job))
    if refusal is None or leaving:
        return Runner(state="running" if leaving else "pending", since=since)
    failure, _ = classify_pod.not_created(refusal)
    return Runner(state="failed" if failure else "pending", since=since, failure=failure)


def _over(pod: Body) -> bool:
    return bodies.status(pod).get("phase") in ("Succeeded", "Failed")


def _ran(pod: Body) -> bool:
    return int(bodies.container_status(pod, CONTAINER).get("restartCount") or 0) > 0
