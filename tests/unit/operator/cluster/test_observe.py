"""From bodies to what the planner sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from goodput.analysis.schema.answer import AnalysisAnswer
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


@dataclass
class Scene:
    """One trial whose memory is there; what else there is, each test says."""

    memory: Body
    deployment: Body
    job: Body
    make_pod: Make
    trial: TrialId
    owner: Owner
    t0: float
    at: At

    def seen(self, texts: Texts | None = None, **children: list[Body]) -> Trial:
        found = Children(config_maps=[self.memory], **children)
        return observe(found, {}, self.t0, texts).trials[self.trial]


@pytest.fixture
def scene(make_child: Make, make_pod: Make, owner: Owner, trial: TrialId, t0: float, at: At) -> Scene:  # noqa: PLR0917  fixtures
    memory = make_child("ConfigMap", names.MEMORY, names.memory_name(owner, trial))
    memory["metadata"]["annotations"] = {names.ORDER: "3"}
    deployment = make_child("Deployment", names.SERVER, names.server_name(owner, trial))
    job = make_child("Job", names.RUNNER, names.runner_name(owner, trial), spec={"parallelism": 1})
    return Scene(memory, deployment, job, make_pod, trial, owner, t0, at)


def server(found: Trial) -> Server:
    assert found.server is not None
    return found.server


def runner(found: Trial) -> Runner:
    assert found.runner is not None
    return found.runner


def ended(code: int, message: str = "", reason: str = "Error") -> Body:
    return {"state": {"terminated": {"exitCode": code, "reason": reason, "message": message}}}


class TestServer:
    def test_a_trial_is_there_because_its_memory_is(self, scene: Scene) -> None:
        found = scene.seen()
        assert (found.server, found.runner, found.memory.order) == (None, None, 3)

    def test_without_a_memory_there_is_no_trial(self, scene: Scene) -> None:
        assert observe(Children(deployments=[scene.deployment], pods=[scene.make_pod()]), {}, scene.t0).trials == {}

    def test_a_deployment_without_pod_is_pending(self, scene: Scene) -> None:
        assert server(scene.seen(deployments=[scene.deployment])).state == "pending"

    def test_ready_with_address_times_and_digest(self, scene: Scene) -> None:
        pod = scene.make_pod(container={**RUNNING, "imageID": "x/y@sha256:abc"}, conditions=READY)
        found = server(scene.seen(deployments=[scene.deployment], pods=[pod]))
        assert (found.state, found.url) == ("ready", "http://10.0.0.7:8000")
        assert (found.running, found.ready, found.scheduled) == (scene.t0 + 10, scene.t0 + 20, scene.t0 + 20)
        assert (found.pod_uid, found.node, found.image) == ("server-pod-uid", "node-1", "image:1")
        assert found.image_digest == "sha256:abc"

    def test_an_ipv6_address_is_bracketed(self, scene: Scene) -> None:
        pod = scene.make_pod(container=RUNNING, conditions=READY, status={"podIP": "fd00::7"})
        found = server(scene.seen(deployments=[scene.deployment], pods=[pod]))
        assert found.url == "http://[fd00::7]:8000"

    def test_a_running_container_that_is_not_ready_is_starting(self, scene: Scene) -> None:
        pod = scene.make_pod(container=RUNNING, conditions={"Ready": ("False", "", "")})
        assert server(scene.seen(deployments=[scene.deployment], pods=[pod])).state == "starting"

    @pytest.mark.parametrize("code", [0, 1, 137])
    def test_a_container_that_ended_is_a_failure_whatever_its_exit_code(self, code: int, scene: Scene) -> None:
        pod = scene.make_pod(container=ended(code, "last words"))
        found = server(scene.seen(deployments=[scene.deployment], pods=[pod]))
        assert found.state == "ended"
        assert found.failure == Failure("ServerGone", f"the container ended with exit code {code}: last words")

    def test_a_restarted_container_has_ended(self, scene: Scene) -> None:
        before = {"lastState": ended(1)["state"], "restartCount": 1}
        pod = scene.make_pod(container={**RUNNING, **before}, conditions=READY)
        assert server(scene.seen(deployments=[scene.deployment], pods=[pod])).state == "ended"

    def test_the_whole_log_tells_more_than_the_message(self, scene: Scene) -> None:
        pod = scene.make_pod(container=ended(1, "RuntimeError: Engine core initialization failed"))
        texts = Texts(logs={"server-pod-uid": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"})
        found = server(scene.seen(texts, deployments=[scene.deployment], pods=[pod]))
        assert found.failure is not None
        assert found.failure.reason == "CudaOutOfMemory"

    def test_stopping_until_no_pod_is_left(self, scene: Scene) -> None:
        leaving = {**scene.deployment, "metadata": {**scene.deployment["metadata"], "deletionTimestamp": scene.at(30)}}
        pod = scene.make_pod(container=RUNNING)
        assert server(scene.seen(deployments=[leaving], pods=[pod])).state == "stopping"
        assert server(scene.seen(pods=[pod])).state == "stopping"
        assert scene.seen().server is None

    def test_another_pod_than_the_measured_one_is_not_the_server(self, scene: Scene) -> None:
        scene.memory["metadata"]["annotations"][names.SERVER_POD] = "first"
        second = scene.make_pod(container=RUNNING, conditions=READY, uid="second")
        found = server(scene.seen(deployments=[scene.deployment], pods=[second]))
        assert (found.state, found.failure and found.failure.reason) == ("ended", "ServerGone")
        first = scene.make_pod(
            container=RUNNING, conditions=READY, uid="first", metadata={"deletionTimestamp": scene.at(40)}
        )
        found = server(scene.seen(deployments=[scene.deployment], pods=[second, first]))
        assert (found.state, found.failure and found.failure.reason) == ("ended", "ServerGone")

    def test_before_it_is_measured_a_pod_may_be_replaced(self, scene: Scene) -> None:
        gone = scene.make_pod(container=RUNNING, uid="first", metadata={"deletionTimestamp": scene.at(5)})
        young = scene.make_pod(
            container=RUNNING, conditions=READY, uid="second", metadata={"creationTimestamp": scene.at(6)}
        )
        found = server(scene.seen(deployments=[scene.deployment], pods=[gone, young]))
        assert (found.state, found.pod_uid) == ("ready", "second")

    def test_an_eviction_is_a_disruption(self, scene: Scene) -> None:
        scene.memory["metadata"]["annotations"][names.SERVER_POD] = "server-pod-uid"
        taken = {"DisruptionTarget": ("True", "EvictionByEvictionAPI", "Eviction API: evicting")}
        pod = scene.make_pod(container=RUNNING, conditions={**READY, **taken})
        found = server(scene.seen(deployments=[scene.deployment], pods=[pod]))
        assert found.failure == Failure("Evicted", "Eviction API: evicting")

    @pytest.mark.parametrize(
        ("message", "failure", "waiting"),
        [
            ('pods "x" is forbidden: violates PodSecurity "restricted:latest"', "PodRefused", None),
            ('pods "x" is forbidden: exceeded quota: gpus, requested: 1, used: 1', None, "QuotaExceeded"),
        ],
    )
    def test_a_pod_that_is_not_let_in_leaves_only_a_condition(
        self, message: str, failure: str | None, waiting: str | None, scene: Scene
    ) -> None:
        condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
        scene.deployment["status"] = {"conditions": [condition]}
        found = server(scene.seen(deployments=[scene.deployment]))
        assert found.state == "pending"
        assert (found.failure and found.failure.reason) == failure
        assert (found.waiting and found.waiting.reason) == waiting

    def test_a_deployment_that_was_not_taken_is_a_failed_server_until_the_trial_ends(self, scene: Scene) -> None:
        texts = Texts(refused={names.server_name(scene.owner, scene.trial): Failure("PodRefused", "no")})
        assert server(
            scene.seen(
                texts,
            )
        ).failure == Failure("PodRefused", "no")
        scene.memory["metadata"]["annotations"][names.ENDED] = "1.0"
        assert (
            scene.seen(
                texts,
            ).server
            is None
        )


class TestRunner:
    def test_finished_with_its_outcome(self, scene: Scene) -> None:
        outcome = Outcome(planned=2, valid=1, open=(OpenCell(load="l", outcome="void", reason="SendLag"),))
        pod = scene.make_pod(names.RUNNER, ended(0, outcome.message(), "Completed"))
        found = runner(scene.seen(jobs=[scene.job], pods=[pod]))
        assert (found.state, found.outcome) == ("finished", outcome)

    def test_running_with_what_it_says_of_itself(self, scene: Scene) -> None:
        status = RunnerStatus(step="measuring", planned=2)
        pod = scene.make_pod(names.RUNNER, RUNNING)
        found = runner(scene.seen(Texts(live={"runner-pod-uid": status}), jobs=[scene.job], pods=[pod]))
        assert (found.state, found.status) == ("running", status)

    def test_between_two_tries_of_its_container_it_is_running(self, scene: Scene) -> None:
        waiting = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended(1)["state"]}
        pod = scene.make_pod(names.RUNNER, {**waiting, "restartCount": 1, "started": False})
        assert runner(scene.seen(jobs=[scene.job], pods=[pod])).state == "running"

    def test_told_to_stop_it_is_stopping_until_its_pod_is_gone(self, scene: Scene) -> None:
        scene.job["spec"]["parallelism"] = 0
        pod = scene.make_pod(names.RUNNER, RUNNING, metadata={"deletionTimestamp": scene.at(50)})
        assert runner(scene.seen(jobs=[scene.job], pods=[pod])).state == "stopping"
        assert runner(scene.seen(jobs=[scene.job])).state == "failed"

    def test_the_last_word_of_a_stopped_runner_is_read(self, scene: Scene) -> None:
        scene.job["spec"]["parallelism"] = 0
        message = Outcome(planned=1, valid=0).message()
        pod = scene.make_pod(names.RUNNER, ended(0, message), metadata={"deletionTimestamp": scene.at(50)})
        assert runner(scene.seen(jobs=[scene.job], pods=[pod])).state == "finished"

    def test_a_failed_job_names_the_end_of_its_container(self, scene: Scene) -> None:
        scene.job["status"] = {
            "conditions": [
                {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit reached"}
            ]
        }
        pod = scene.make_pod(names.RUNNER, ended(1, "Traceback\nValueError: x"), status={"phase": "Failed"})
        found = runner(scene.seen(jobs=[scene.job], pods=[pod]))
        assert found.state == "failed"
        assert found.failure == Failure("RunnerFailed", "exit code 1 (Error): ValueError: x; limit reached")

    def test_a_pod_that_cannot_start_is_a_failed_runner(self, scene: Scene) -> None:
        pod = scene.make_pod(names.RUNNER, {"state": {"waiting": {"reason": "InvalidImageName", "message": "bad"}}})
        found = runner(scene.seen(jobs=[scene.job], pods=[pod]))
        assert (found.state, found.failure) == ("failed", Failure("ImagePullFailed", "bad"))

    def test_a_job_without_pod_says_why_in_an_event(self, scene: Scene) -> None:
        refusal = {scene.job["metadata"]["uid"]: 'pods "x" is forbidden: violates PodSecurity'}
        found = runner(scene.seen(Texts(refusals=refusal), jobs=[scene.job]))
        assert (found.state, found.failure and found.failure.reason) == ("failed", "PodRefused")
        full = {scene.job["metadata"]["uid"]: "exceeded quota: pods"}
        assert runner(scene.seen(Texts(refusals=full), jobs=[scene.job])).state == "pending"


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
        answer = AnalysisAnswer(generation=2, block="0", uploaded_logs=(trial.name,))
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
