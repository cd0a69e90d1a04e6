"""A sweep, and bodies as the API server gives them, for tests of the cluster driver."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from goodput.analysis.schema.answer import AnalysisAnswer
from goodput.operator.cluster import bodies, names
from goodput.operator.cluster.errors import ApiError
from goodput.operator.cluster.names import Owner
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep, TrialId
from goodput.runner.contract import CanaryAnswer, Outcome

Body = dict[str, Any]
UID = "0b0b0b0b-1111-2222-3333-444444444444"


def document(**changes: Any) -> Body:
    """A whole BenchmarkSweep; keyword arguments replace parts of its spec."""
    spec = {
        "model": {"name": "toy/model"},
        "engines": [{"name": "sim", "kind": "simulated", "args": {"max_model_len": 4096, "max_num_seqs": 64}}],
        "configs": {"grid": {"max_num_batched_tokens": [1024, 4096]}},
        "workload": {"promptTokens": [64], "outputTokens": [8], "requestRate": [4], "window": {"duration": "3s"}},
        "slo": {"ttft": "500ms"},
        "plan": {"blocks": {"min": 1}, "sentinel": "off"},
        "results": {"uri": "s3://bench/x", "credentialsSecretRef": {"name": "bench-s3"}},
        **changes,
    }
    meta = {"name": "t", "namespace": "ns", "uid": UID, "generation": 1, "resourceVersion": "1"}
    return {"apiVersion": "goodput.dev/v1alpha1", "kind": "BenchmarkSweep", "metadata": meta, "spec": spec}


def vllm_engine(**changes: Any) -> Body:
    return {
        "name": "vllm",
        "kind": "vllm",
        "image": "vllm/vllm-openai:v0.32.0",
        "args": {"max_model_len": 4096, "max_num_seqs": 64},
        "resources": {"limits": {"memory": "8Gi"}, "requests": {"cpu": "2"}},
        **changes,
    }


@pytest.fixture
def make_document() -> Callable[..., Body]:
    return document


@pytest.fixture
def make_sweep() -> Callable[..., Sweep]:
    def make(**changes: Any) -> Sweep:
        return resolve(document(**changes), namespace="ns", name="t", uid=UID)

    return make


@pytest.fixture
def make_vllm() -> Callable[..., Body]:
    return vllm_engine


@pytest.fixture
def sweep(make_sweep: Callable[..., Sweep]) -> Sweep:
    return make_sweep()


@pytest.fixture
def trial(sweep: Sweep) -> TrialId:
    return TrialId("0", sweep.configs[0].id, 1)


@pytest.fixture
def owner() -> Owner:
    return Owner("ns", "t", UID)


@pytest.fixture
def make_pod(owner: Owner, trial: TrialId) -> Callable[..., Body]:
    """A pod of the trial; ``container``: its container's status; ``conditions``: (status, reason, text) by type."""

    def make(
        role: str = names.SERVER,
        container: Body | None = None,
        conditions: dict[str, tuple[str, str, str]] | None = None,
        **changes: Any,
    ) -> Body:
        status: Body = {"phase": "Running", "podIP": "10.0.0.7"}
        if container is not None:
            status["containerStatuses"] = [{"name": role, "restartCount": 0, **container}]
        status["conditions"] = [
            {"type": kind, "status": value, "reason": reason, "message": text, "lastTransitionTime": at(20)}
            for kind, (value, reason, text) in (conditions or {}).items()
        ]
        status |= changes.pop("status", {})
        meta = {
            "name": f"{role}-pod",
            "namespace": "ns",
            "uid": changes.pop("uid", f"{role}-pod-uid"),
            "labels": names.labels(owner, role, trial),
            "creationTimestamp": at(0),
            "resourceVersion": "10",
            **changes.pop("metadata", {}),
        }
        if role == names.RUNNER:
            meta["labels"]["batch.kubernetes.io/job-name"] = names.runner_name(owner, trial)
        spec = {"nodeName": "node-1", "containers": [{"name": role, "image": "image:1"}]}
        return {"kind": "Pod", "metadata": meta, "spec": spec, "status": status, **changes}

    return make


@pytest.fixture
def make_child(owner: Owner, trial: TrialId) -> Callable[..., Body]:
    """Any other child of the trial."""

    def make(kind: str, role: str, name: str, **changes: Any) -> Body:
        meta = {
            "name": name,
            "namespace": "ns",
            "uid": f"{kind}-{name}",
            "labels": names.labels(owner, role, None if role in (names.CANARY, names.ANALYSIS) else trial),
            "creationTimestamp": at(0),
            "resourceVersion": "5",
            **changes.pop("metadata", {}),
        }
        return {"kind": kind, "metadata": meta, **changes}

    return make


def at(seconds: int) -> str:
    """A moment of the test's clock, which begins at T0."""
    return f"2026-11-30T06:{seconds // 60:02d}:{seconds % 60:02d}Z"


@pytest.fixture(name="at")
def moment() -> Callable[[int], str]:
    return at


@pytest.fixture
def t0() -> float:
    found = bodies.seconds(at(0))
    assert found is not None
    return found


class World:
    """An API server in memory with controllers that do their work at once: what a driver needs to run a sweep."""

    def __init__(self, sweep: Body) -> None:
        self.objects: dict[tuple[str, str], Body] = {("benchmarksweeps", "t"): sweep}
        self.created: list[tuple[str, str]] = []
        self.calls = 0
        self.fail_at: int | None = None  # this call has its effect, and its answer is lost
        self.broken: dict[str, ApiError] = {}  # refusals by plural
        self._version = 100

    @property
    def sweep(self) -> Body:
        return self.objects["benchmarksweeps", "t"]

    def of(self, plural: str, role: str | None = None) -> list[Body]:
        found = [body for (kind, _), body in self.objects.items() if kind == plural]
        return [body for body in found if role is None or bodies.labels(body).get(names.ROLE) == role]

    def json(self, method: str, path: str, body: Any = None, **query: Any) -> Body:
        self.calls += 1
        plural, name = self._parse(path)
        if method == "DELETE" and not name:  # the only deletion of many
            assert query["labelSelector"] == f"{names.SWEEP_UID}={UID},{names.ROLE} in ({names.LOGS},{names.INPUT})"
        found = self._answer(method, plural, name, copy.deepcopy(body))
        if self.calls == self.fail_at:
            raise ApiError(f"{method} {path}: connection lost")
        return copy.deepcopy(found)

    def text(self, path: str, **_: Any) -> str:
        self.calls += 1
        return f"log of {path.split('/')[-2]}\n"

    def work(self) -> None:
        """Controllers, scheduler and kubelet: one round."""
        for pod in self.of("pods"):
            (owner,) = pod["metadata"]["ownerReferences"]
            if all(body["metadata"]["uid"] != owner["uid"] for body in (*self.of("deployments"), *self.of("jobs"))):
                del self.objects["pods", pod["metadata"]["name"]]
        for deployment in self.of("deployments"):
            self._pod(deployment, {"state": {"running": {"startedAt": at(10)}}, "started": True}, "True")
        for job in self.of("jobs"):
            if job["spec"].get("parallelism") == 0:
                continue
            message = self._message(job)
            end = {"exitCode": 0, "reason": "Completed", "message": message}
            self._pod(job, {"state": {"terminated": end}}, "False")
            job["status"] = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}
            self._touch(job)

    def _message(self, job: Body) -> str:
        labels = job["metadata"]["labels"]
        if labels[names.ROLE] == names.CANARY:
            return CanaryAnswer(ok=True).model_dump_json()
        if labels[names.ROLE] == names.RUNNER:
            memory = self.objects["configmaps", job["metadata"]["name"].removesuffix("-run")]
            loads = len(json.loads(memory["data"]["trial.json"])["loads"])
            return Outcome(planned=loads, valid=loads).message()
        given = json.loads(self.objects["configmaps", job["metadata"]["name"]]["data"]["analysis.json"])
        saved = tuple(name for name in given["logs"] if ("configmaps", f"t-{name}-logs") in self.objects)
        return AnalysisAnswer(
            generation=given["states"]["generation"], block=given["block"], verdict="undecided", uploaded_logs=saved
        ).model_dump_json()

    def _pod(self, parent: Body, container: Body, ready: str) -> None:
        name = f"{parent['metadata']['name']}-pod"
        if ("pods", name) in self.objects:
            return
        template = parent["spec"]["template"]
        labels = dict(template["metadata"]["labels"])
        if parent["kind"] == "Job":
            labels["batch.kubernetes.io/job-name"] = parent["metadata"]["name"]
        conditions = [
            {"type": kind, "status": ready, "lastTransitionTime": at(20)} for kind in ("Ready", "PodScheduled")
        ]
        status = {
            "phase": "Running",
            "podIP": "10.0.0.7",
            "conditions": conditions,
            "containerStatuses": [{"name": template["spec"]["containers"][0]["name"], "restartCount": 0, **container}],
        }
        owner = {"kind": parent["kind"], "uid": parent["metadata"]["uid"], "controller": True}
        meta = {"name": name, "namespace": "ns", "labels": labels, "ownerReferences": [owner]}
        self._store("pods", {"kind": "Pod", "metadata": meta, "spec": template["spec"], "status": status})

    def _answer(self, method: str, plural: str, name: str, body: Any) -> Body:
        if plural in self.broken and method == "POST":
            raise self.broken[plural]
        if method == "POST":
            name = body["metadata"]["name"]
            if plural == "events":
                return dict(body)
            if (plural, name) in self.objects:
                raise ApiError("already exists", 409)
            self.created.append((plural, name))
            return self._store(plural, body)
        if method == "GET" and not name:
            return {"items": self.of(plural)}
        if method == "DELETE" and not name:
            for role in (names.LOGS, names.INPUT):
                for unused in self.of(plural, role):
                    del self.objects[plural, unused["metadata"]["name"]]
            return {}
        if (plural, name) not in self.objects:
            raise ApiError("not found", 404)
        if method == "DELETE":
            del self.objects[plural, name]
            return {"status": "Success"}
        found = self.objects[plural, name]
        if method == "PATCH":
            self._merge(found, body)
            self._touch(found)
        return found

    def _store(self, plural: str, body: Body) -> Body:
        body["metadata"].setdefault("uid", f"uid-{plural}-{body['metadata']['name']}-{self._version}")
        body["metadata"].setdefault("creationTimestamp", at(0))
        self.objects[plural, body["metadata"]["name"]] = body
        self._touch(body)
        return body

    def _touch(self, body: Body) -> None:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)

    def _merge(self, target: Body, patch: Body) -> None:
        for key, value in patch.items():
            if value is None:
                target.pop(key, None)
            elif isinstance(value, dict):
                self._merge(target.setdefault(key, {}), value)
            else:
                target[key] = value

    @staticmethod
    def _parse(path: str) -> tuple[str, str]:
        parts = [*path.split("/namespaces/")[1].split("/")[1:], ""]
        return parts[0], parts[1]


@pytest.fixture
def make_world() -> Callable[..., World]:
    def make(**changes: Any) -> World:
        return World(document(**changes))

    return make
