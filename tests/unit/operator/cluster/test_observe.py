"""From bodies to what the planner sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goodput.analysis.schema import AnalysisAnswer
from goodput.operator.cluster import names
from goodput.operator.cluster.names import Owner
from goodput.operator.cluster.observe import Children, Texts, observe
from goodput.operator.observed import Failure, Runner, Server, Trial
from goodput.operator.sweep import TrialId
from goodput.runner.contract import CanaryAnswer, OpenCell, Outcome, RunnerStatus

Body = dict[str, Any]
Make = Callable[..., Body]
At = Callable[[int], str]
RUNNING = {"state": {"running": {"startedAt": "2026-11-30T06:00:10Z"}}, "started": True}
READY = {"Ready": ("True", "", ""), "PodScheduled": ("True", "", "")}


@pytest.fixture
def memory(make_child: Make, owner: Owner, trial: TrialId) -> Body:
    name = names.memory_name(owner, trial)
    return make_child("ConfigMap", names.MEMORY, name, metadata={"annotations": {names.ORDER: "3"}})


@pytest.fixture
def deployment(make_child: Make, owner: Owner, trial: TrialId) -> Body:
    return make_child("Deployment", names.SERVER, names.server_name(owner, trial))


@pytest.fixture
def job(make_child: Make, owner: Owner, trial: TrialId) -> Body:
    return make_child("Job", names.RUNNER, names.runner_name(owner, trial), spec={"parallelism": 1})


def seen(trial: TrialId, now: float, texts: Texts | None = None, **children: list[Body]) -> Trial:
    return observe(Children(**children), {}, now, texts).trials[trial]


def server(found: Trial) -> Server:
    assert found.server is not None
    return found.server


def runner(found: Trial) -> Runner:
    assert found.runner is not None
    return found.runner


def ended(code: int, message: str = "", reason: str = "Error") -> Body:
    return {"state": {"terminated": {"exitCode": code, "reason": reason, "message": message}}}


class TestServer:
    def test_a_trial_is_there_because_its_memory_is(self, memory: Body, trial: TrialId, t0: float) -> None:
        found = seen(trial, t0, config_maps=[memory])
        assert (found.server, found.runner, found.memory.order) == (None, None, 3)

    def test_without_a_memory_there_is_no_trial(self, deployment: Body, make_pod: Make, t0: float) -> None:
        assert observe(Children(deployments=[deployment], pods=[make_pod()]), {}, t0).trials == {}

    def test_a_deployment_without_pod_is_pending(
        self, memory: Body, deployment: Body, trial: TrialId, t0: float
    ) -> None:
        assert server(seen(trial, t0, config_maps=[memory], deployments=[deployment])).state == "pending"

    def test_ready_with_address_times_and_digest(
        self, memory: Body, deployment: Body, make_pod: Make, trial: TrialId, t0: float
    ) -> None:
        pod = make_pod(container={**RUNNING, "imageID": "x/y@sha256:abc"}, conditions=READY)
        found = server(seen(trial, t0, config_maps=[memory], deployments=[deployment], pods=[pod]))
        assert (found.state, found.url) == ("ready", "http://10.0.0.7:8000")
        assert (found.running, found.ready, found.scheduled) == (t0 + 10, t0 + 20, t0 + 20)
        assert (found.pod_uid, found.node, found.image) == ("server-pod-uid", "node-1", "image:1")
        assert found.image_digest == "sha256:abc"

    def test_an_ipv6_address_is_bracketed(
        self, memory: Body, deployment: Body, make_pod: Make, trial: TrialId, t0: float
    ) -> None:
        pod = make_pod(container=RUNNING, conditions=READY, status={"podIP": "fd00::7"})
        found = server(seen(trial, t0, config_maps=[memory], deployments=[deployment], pods=[pod]))
        assert found.url == "http://[fd00::7]:8000"

    def test_a_running_container_that_is_not_ready_is_starting(
        self, memory: Body, deployment: Body, make_pod: Make, trial: TrialId, t0: float
    ) -> None:
        pod = make_pod(container=RUNNING, conditions={"Ready": ("False", "", "")})
        assert server(seen(trial, t0, config_maps=[memory], deployments=[deployment], pods=[pod])).state == "starting"

    @pytest.mark.parametrize("code", [0, 1, 137])
    def test_a_container_that_ended_is_a_failure_whatever_its_exit_code(
        self, code: int, memory: Body, deployment: Body, make_pod: Make, trial: TrialId, t0: float
    ) -> None:
        pod = make_pod(container=ended(code, "last words"))
        found = server(seen(trial, t0, config_maps=[memory], deployments=[deployment], pods=[pod]))
        assert found.state == "ended"
        assert found.failure == Failure("ServerGone", f"the container ended with exit code {code}: last words")

    def test_a_restarted_container_has_ended(
        self, memory: Body, deployment: Body, make_pod: Make, trial: TrialId, t0: float
    ) -> None:
        before = {"lastState": ended(1)["state"], "restartCount": 1}
        pod = make_pod(container={**RUNNING, **before}, conditions=READY)
        assert server(seen(trial, t0, config_maps=[memory], deployments=[deployment], pods=[pod])).state == "ended"

    def test_the_whole_log_tells_more_than_the_message(
        self, memory: Body, deployment: Body, make_pod: Make, trial: TrialId, t0: float
    ) -> None:
        pod = make_pod(container=ended(1, "RuntimeError: Engine core initialization failed"))
        texts = Texts(logs={"server-pod-uid": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"})
        found = server(seen(trial, t0, texts, config_maps=[memory], deployments=[deployment], pods=[pod]))
        assert found.failure is not None
        assert found.failure.reason == "CudaOutOfMemory"

    def test_stopping_until_no_pod_is_left(
        self, memory: Body, deployment: Body, make_pod: Make, trial: TrialId, t0: float, at: At
    ) -> None:
        leaving = {**deployment, "metadata": {**deployment["metadata"], "deletionTimestamp": at(30)}}
        pod = make_pod(container=RUNNING)
        assert server(seen(trial, t0, config_maps=[memory], deployments=[leaving], pods=[pod])).state == "stopping"
        assert server(seen(trial, t0, config_maps=[memory], pods=[pod])).state == "stopping"
        assert seen(trial, t0, config_maps=[memory]).server is None

    def test_another_pod_than_the_measured_one_is_not_the_server(
        self, memory: Body, deployment: Body, make_pod: Make, trial: TrialId, t0: float, at: At
    ) -> None:
        memory["metadata"]["annotations"][names.SERVER_POD] = "first"
        second = make_pod(container=RUNNING, conditions=READY, uid="second")
        found = server(seen(trial, t0, config_maps=[memory], deployments=[deployment], pods=[second]))
        assert (found.state, found.failure and found.failure.reason) == ("ended", "ServerGone")
        first = make_pod(container=RUNNING, conditions=READY, uid="first", metadata={"deletionTimestamp": at(40)})
        found = server(seen(trial, t0, config_maps=[memory], deployments=[deployment], pods=[second, first]))
        assert (found.state, found.failure and found.failure.reason) == ("ended", "ServerGone")

    def test_before_it_is_measured_a_pod_may_be_replaced(
        self, memory: Body, deployment: Body, make_pod: Make, trial: TrialId, t0: float, at: At
    ) -> None:
        gone = make_pod(container=RUNNING, uid="first", metadata={"deletionTimestamp": at(5)})
        young = make_pod(container=RUNNING, conditions=READY, uid="second", metadata={"creationTimestamp": at(6)})
        found = server(seen(trial, t0, config_maps=[memory], deployments=[deployment], pods=[gone, young]))
        assert (found.state, found.pod_uid) == ("ready", "second")

    def test_an_eviction_is_a_disruption(
        self, memory: Body, deployment: Body, make_pod: Make, trial: TrialId, t0: float
    ) -> None:
        memory["metadata"]["annotations"][names.SERVER_POD] = "server-pod-uid"
        taken = {"DisruptionTarget": ("True", "EvictionByEvictionAPI", "Eviction API: evicting")}
        pod = make_pod(container=RUNNING, conditions={**READY, **taken})
        found = server(seen(trial, t0, config_maps=[memory], deployments=[deployment], pods=[pod]))
        assert found.failure == Failure("Evicted", "Eviction API: evicting")

    @pytest.mark.parametrize(
        ("message", "failure", "waiting"),
        [
            ('pods "x" is forbidden: violates PodSecurity "restricted:latest"', "PodRefused", None),
            ('pods "x" is forbidden: exceeded quota: gpus, requested: 1, used: 1', None, "QuotaExceeded"),
        ],
    )
    def test_a_pod_that_is_not_let_in_leaves_only_a_condition(
        self,
        message: str,
        failure: str | None,
        waiting: str | None,
        memory: Body,
        deployment: Body,
        trial: TrialId,
        t0: float,
    ) -> None:
        condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
        deployment["status"] = {"conditions": [condition]}
        found = server(seen(trial, t0, config_maps=[memory], deployments=[deployment]))
        assert found.state == "pending"
        assert (found.failure and found.failure.reason) == failure
        assert (found.waiting and found.waiting.reason) == waiting

    def test_a_deployment_that_was_not_taken_is_a_failed_server_until_the_trial_ends(
        self, memory: Body, owner: Owner, trial: TrialId, t0: float
    ) -> None:
        texts = Texts(refused={names.server_name(owner, trial): Failure("PodRefused", "no")})
        assert server(seen(trial, t0, texts, config_maps=[memory])).failure == Failure("PodRefused", "no")
        memory["metadata"]["annotations"][names.ENDED] = "1.0"
        assert seen(trial, t0, texts, config_maps=[memory]).server is None


class TestRunner:
    def test_finished_with_its_outcome(
        self, memory: Body, job: Body, make_pod: Make, trial: TrialId, t0: float
    ) -> None:
        outcome = Outcome(planned=2, valid=1, open=(OpenCell(load="l", outcome="void", reason="SendLag"),))
        pod = make_pod(names.RUNNER, ended(0, outcome.message(), "Completed"))
        found = runner(seen(trial, t0, config_maps=[memory], jobs=[job], pods=[pod]))
        assert (found.state, found.outcome) == ("finished", outcome)

    def test_running_with_what_it_says_of_itself(
        self, memory: Body, job: Body, make_pod: Make, trial: TrialId, t0: float
    ) -> None:
        status = RunnerStatus(step="measuring", planned=2)
        pod = make_pod(names.RUNNER, RUNNING)
        found = runner(
            seen(trial, t0, Texts(live={"runner-pod-uid": status}), config_maps=[memory], jobs=[job], pods=[pod])
        )
        assert (found.state, found.status) == ("running", status)

    def test_between_two_tries_of_its_container_it_is_running(
        self, memory: Body, job: Body, make_pod: Make, trial: TrialId, t0: float
    ) -> None:
        waiting = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended(1)["state"]}
        pod = make_pod(names.RUNNER, {**waiting, "restartCount": 1, "started": False})
        assert runner(seen(trial, t0, config_maps=[memory], jobs=[job], pods=[pod])).state == "running"

    def test_told_to_stop_it_is_stopping_until_its_pod_is_gone(
        self, memory: Body, job: Body, make_pod: Make, trial: TrialId, t0: float, at: At
    ) -> None:
        job["spec"]["parallelism"] = 0
        pod = make_pod(names.RUNNER, RUNNING, metadata={"deletionTimestamp": at(50)})
        assert runner(seen(trial, t0, config_maps=[memory], jobs=[job], pods=[pod])).state == "stopping"
        assert runner(seen(trial, t0, config_maps=[memory], jobs=[job])).state == "failed"

    def test_the_last_word_of_a_stopped_runner_is_read(
        self, memory: Body, job: Body, make_pod: Make, trial: TrialId, t0: float, at: At
    ) -> None:
        job["spec"]["parallelism"] = 0
        message = Outcome(planned=1, valid=0).message()
        pod = make_pod(names.RUNNER, ended(0, message), metadata={"deletionTimestamp": at(50)})
        assert runner(seen(trial, t0, config_maps=[memory], jobs=[job], pods=[pod])).state == "finished"

    def test_a_failed_job_names_the_end_of_its_container(
        self, memory: Body, job: Body, make_pod: Make, trial: TrialId, t0: float
    ) -> None:
        job["status"] = {
            "conditions": [
                {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit reached"}
            ]
        }
        pod = make_pod(names.RUNNER, ended(1, "Traceback\nValueError: x"), status={"phase": "Failed"})
        found = runner(seen(trial, t0, config_maps=[memory], jobs=[job], pods=[pod]))
        assert found.state == "failed"
        assert found.failure == Failure("RunnerFailed", "exit code 1 (Error): ValueError: x; limit reached")

    def test_a_pod_that_cannot_start_is_a_failed_runner(
        self, memory: Body, job: Body, make_pod: Make, trial: TrialId, t0: float
    ) -> None:
        pod = make_pod(names.RUNNER, {"state": {"waiting": {"reason": "InvalidImageName", "message": "bad"}}})
        found = runner(seen(trial, t0, config_maps=[memory], jobs=[job], pods=[pod]))
        assert (found.state, found.failure) == ("failed", Failure("ImagePullFailed", "bad"))

    def test_a_job_without_pod_says_why_in_an_event(self, memory: Body, job: Body, trial: TrialId, t0: float) -> None:
        refusal = {job["metadata"]["uid"]: 'pods "x" is forbidden: violates PodSecurity'}
        found = runner(seen(trial, t0, Texts(refusals=refusal), config_maps=[memory], jobs=[job]))
        assert (found.state, found.failure and found.failure.reason) == ("failed", "PodRefused")
        full = {job["metadata"]["uid"]: "exceeded quota: pods"}
        assert runner(seen(trial, t0, Texts(refusals=full), config_maps=[memory], jobs=[job])).state == "pending"


class TestTasks:
    def canary(self, make_child: Make, owner: Owner, status: Body | None = None) -> Body:
        return make_child("Job", names.CANARY, names.canary_name(owner), status=status or {})

    def pod(self, make_pod: Make, job: Body, container: str, state: Body) -> Body:
        pod = make_pod(container, state)
        pod["metadata"]["labels"] = {
            **job["metadata"]["labels"],
            "batch.kubernetes.io/job-name": job["metadata"]["name"],
        }
        return pod

    def test_the_canary_succeeds(self, make_child: Make, make_pod: Make, owner: Owner, t0: float) -> None:
        job = self.canary(make_child, owner)
        pod = self.pod(make_pod, job, "runner", ended(0, CanaryAnswer(ok=True).model_dump_json()))
        canary = observe(Children(jobs=[job], pods=[pod]), {}, t0).canary
        assert canary is not None
        assert canary.state == "succeeded"

    def test_the_canarys_reason_is_kept(self, make_child: Make, make_pod: Make, owner: Owner, t0: float) -> None:
        failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}
        job = self.canary(make_child, owner, failed)
        answer = CanaryAnswer(ok=False, reason="UploadDenied", message="403")
        pod = self.pod(make_pod, job, "runner", ended(1, answer.model_dump_json()))
        canary = observe(Children(jobs=[job], pods=[pod]), {}, t0).canary
        assert canary is not None
        assert (canary.state, canary.failure) == ("failed", Failure("UploadDenied", "403"))

    def test_an_analysis_answers_for_its_block(
        self, make_child: Make, make_pod: Make, owner: Owner, trial: TrialId, t0: float
    ) -> None:
        labels = names.labels(owner, names.ANALYSIS, generation="2", block="0")
        job = make_child("Job", names.ANALYSIS, names.analysis_name(owner, 2), metadata={"labels": labels})
        answer = AnalysisAnswer(generation=2, block="0", uploaded_logs=(trial.folder,))
        pod = self.pod(make_pod, job, "analysis", ended(0, answer.model_dump_json()))
        found = observe(Children(jobs=[job], pods=[pod]), {}, t0).analyses[2]
        assert (found.state, found.block) == ("succeeded", "0")
        assert found.answer is not None
        assert found.answer.uploaded_logs == (trial.name,)

    def test_an_answer_outlives_its_pod_on_the_job(self, make_child: Make, owner: Owner, t0: float) -> None:
        labels = names.labels(owner, names.ANALYSIS, generation="1", block="final")
        answer = AnalysisAnswer(generation=1, verdict="tie")
        meta = {"labels": labels, "annotations": {names.ANSWER: answer.model_dump_json()}}
        done = {"conditions": [{"type": "Complete", "status": "True"}]}
        job = make_child("Job", names.ANALYSIS, names.analysis_name(owner, 1), metadata=meta, status=done)
        found = observe(Children(jobs=[job]), {}, t0).analyses[1]
        assert (found.state, found.block, found.answer) == ("succeeded", None, answer)

    def test_an_analysis_without_an_answer_has_failed(
        self, make_child: Make, make_pod: Make, owner: Owner, t0: float
    ) -> None:
        labels = names.labels(owner, names.ANALYSIS, generation="1", block="final")
        job = make_child("Job", names.ANALYSIS, names.analysis_name(owner, 1), metadata={"labels": labels})
        pod = self.pod(make_pod, job, "analysis", ended(0, "nonsense"))
        found = observe(Children(jobs=[job], pods=[pod]), {}, t0).analyses[1]
        assert found.state == "failed"
        assert found.failure == Failure("AnalysisFailed", "the analysis gave no answer: nonsense")
