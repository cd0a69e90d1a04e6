"""The canary and the analysis runs: Jobs with one pod and an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import ValidationError

from goodput.analysis.schema.answer import AnalysisAnswer
from goodput.operator.cluster import bodies, classify_pod, names
from goodput.operator.cluster.bodies import Body
from goodput.operator.cluster.manifests.tasks import FINAL
from goodput.operator.observed import Analysis, Canary, Failure
from goodput.runner.contract import CanaryAnswer

State = Literal["running", "succeeded", "failed"]


def observe_canary(job: Body, pods: Sequence[Body], now: float, refusals: Mapping[str, str]) -> Canary:
    """The preflight Job; a failure has the reason that the canary names."""
    state, text = _state(job, pods, "runner")
    failure = None
    if state == "failed":
        failure = _canary_failure(text)
    elif state == "running":
        failure = _refused(job, pods, "runner", now, refusals)
        state = "failed" if failure else "running"
    return Canary(state=state, since=bodies.created(job), failure=failure)


def observe_analysis(job: Body, pods: Sequence[Body], now: float, refusals: Mapping[str, str]) -> Analysis:
    """One analysis run. Its answer is on the Job once it was copied there, else in its pod's message."""
    state, text = _state(job, pods, "analysis")
    answer = answer_of(bodies.annotated(job).get(names.ANSWER)) or (answer_of(text) if state != "running" else None)
    failure = None
    if state == "running":
        failure = _refused(job, pods, "analysis", now, refusals)
        state = "failed" if failure else "running"
    elif state == "failed":
        failure = Failure("AnalysisFailed", _last_line(text))
    elif answer is None:
        state, failure = "failed", Failure("AnalysisFailed", f"the analysis gave no answer: {_last_line(text)}")
    block = bodies.labels(job).get(names.BLOCK, FINAL)
    return Analysis(
        state=state, since=bodies.created(job), block=None if block == FINAL else block, failure=failure, answer=answer
    )


def answer_of(text: str | None) -> AnalysisAnswer | None:
    """The answer in a termination message, or None where the text is none."""
    if not text:
        return None
    try:
        return AnalysisAnswer.model_validate_json(text)
    except ValidationError:
        return None


def unsaved_answer(job: Body, pods: Sequence[Body]) -> str | None:
    """An analysis's answer that is only in its pod's message yet: it is to be copied to the Job."""
    if bodies.labels(job).get(names.ROLE) != names.ANALYSIS or names.ANSWER in bodies.annotated(job):
        return None
    state, text = _state(job, pods, "analysis")
    return text if state == "succeeded" and answer_of(text) is not None else None


def _state(job: Body, pods: Sequence[Body], container: str) -> tuple[State, str]:
    text, code = "", None
    for pod in pods:
        last = (bodies.container_status(pod, container).get("state") or {}).get("terminated")
        if last is not None:
            text, code = str(last.get("message", "")), last.get("exitCode")
    if bodies.holds(job, "Complete") or code == 0:
        return "succeeded", text
    if bodies.holds(job, "Failed") or bodies.holds(job, "FailureTarget"):
        words = bodies.condition(job, "Failed") or bodies.condition(job, "FailureTarget") or {}
        return "failed", text or str(words.get("message", ""))
    return "running", text


def _refused(
    job: Body, pods: Sequence[Body], container: str, now: float, refusals: Mapping[str, str]
) -> Failure | None:
    if not pods:
        text = refusals.get(bodies.uid(job))
        return classify_pod.not_created(text)[0] if text else None
    return next((found for pod in pods if (found := classify_pod.refused(pod, container, now)) is not None), None)


def _canary_failure(text: str) -> Failure:
    try:
        answer = CanaryAnswer.model_validate_json(text)
    except ValidationError:
        return Failure("PreflightRefused", _last_line(text))
    return Failure(answer.reason or "PreflightRefused", answer.message)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1][:512]
