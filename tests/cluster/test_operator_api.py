"""The operator's door to a real API server: what it takes, what it refuses, and what twice means."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client import ApiClient
from testcluster.info import ClusterInfo

from goodput.analysis.schema.sweep import StatesDocument
from goodput.operator.actions import StartAnalysis
from goodput.operator.cluster import bodies, names
from goodput.operator.cluster.api import Api
from goodput.operator.cluster.errors import ApiError, NameTakenError
from goodput.operator.cluster.manifests import configmaps, runner, server, tasks
from goodput.operator.cluster.names import Owner
from goodput.operator.cluster.rest import Rest
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep, TrialId
from goodput.operator.trialplan import trial_plan
from goodput.runner.contract import ServerFacts

pytestmark = pytest.mark.cluster
Body = dict[str, Any]


@pytest.fixture
def api(kube_api: ApiClient) -> Api:
    return Api(Rest(kube_api))


@pytest.fixture
def owner(kube_api: ApiClient, namespace: str) -> Owner:
    """An owner that the garbage collector knows: a ConfigMap stands for the sweep."""
    core: Any = client.CoreV1Api(kube_api)
    made = core.create_namespaced_config_map(namespace, {"metadata": {"name": "t"}})
    return Owner(namespace, "t", made.metadata.uid)


def of(owner: Owner, **changes: Any) -> tuple[Sweep, TrialId]:
    spec = {
        "model": {"name": "toy/model", "cache": {"claimName": "models"}},
        "engines": [
            {
                "name": "vllm",
                "kind": "vllm",
                "image": "vllm/vllm-openai:v0.32.0",
                "args": {"max_model_len": 4096, "max_num_seqs": 64},
                "compileCache": {"mode": "shared", "claimName": "compiled"},
                "podTemplate": {"spec": {"topologySpreadConstraints": []}, "metadata": {"labels": {"team": "x"}}},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                "resources": {"limits": {"memory": "8Gi"}, "requests": {"cpu": "2"}},
            }
        ],
        "configs": {"grid": {"max_num_batched_tokens": [1024, 4096]}},
        "workload": {"requestRate": [4]},
        "slo": {"ttft": "500ms"},
        "results": {"uri": "s3://bench/x", "credentialsSecretRef": {"name": "bench-s3"}},
        **changes,
    }
    document = {"apiVersion": "goodput.dev/v1alpha1", "kind": "BenchmarkSweep", "metadata": {"name": "t"}, "spec": spec}
    sweep = resolve(document, namespace=owner.namespace, name=owner.name, uid=owner.uid)
    return sweep, TrialId("0", sweep.configs[0].id, 1)


def everything(sweep: Sweep, trial: TrialId) -> list[Body]:
    owner = Owner.of(sweep)
    plan = trial_plan(sweep, trial, ServerFacts(url="http://10.0.0.7:8000", order=1))
    action = StartAnalysis(generation=1, block=None, states=StatesDocument(generation=1), logs=(trial,))
    return [
        server.server_deployment(sweep, trial, image="unused"),
        runner.runner_job(sweep, trial, plan, image="runner:1"),
        tasks.canary_job(sweep, image="runner:1"),
        tasks.analysis_job(sweep, 1, None, [trial], image="analysis:1"),
        configmaps.memory(owner, trial, 1),
        configmaps.files(owner, "input", names.INPUT, tasks.analysis_input(sweep, action)),
    ]


def as_sweeps(body: Body) -> Body:
    """The body with an owner that exists here."""
    made = copy.deepcopy(body)
    (owner,) = made["metadata"]["ownerReferences"]
    owner |= {"apiVersion": "v1", "kind": "ConfigMap"}
    return made


def test_every_object_is_taken_in_a_restricted_namespace(api: Api, kube_api: ApiClient, owner: Owner) -> None:
    sweep, trial = of(owner)

    async def create() -> None:
        for body in everything(sweep, trial):
            await api.create(as_sweeps(body))

    asyncio.run(create())
    core: Any = client.CoreV1Api(kube_api)
    events = core.list_namespaced_event(owner.namespace).items
    assert not [event.message for event in events if "violates PodSecurity" in (event.message or "")]


def test_twice_is_once_and_somebody_elses_is_left_alone(api: Api, owner: Owner) -> None:
    sweep, trial = of(owner)
    body = as_sweeps(configmaps.memory(Owner.of(sweep), trial, 1))

    async def create() -> tuple[str, str]:
        first = await api.create(body)
        second = await api.create(body)
        stranger = copy.deepcopy(body)
        stranger["metadata"]["ownerReferences"][0]["uid"] = "somebody-else"
        with pytest.raises(NameTakenError):
            await api.create(stranger)
        return bodies.uid(first), bodies.uid(second)

    first, second = asyncio.run(create())
    assert first == second


def test_an_unknown_field_of_a_template_is_named(api: Api, owner: Owner) -> None:
    sweep, trial = of(owner)
    body = as_sweeps(server.server_deployment(sweep, trial, image="x"))
    body["spec"]["template"]["spec"]["tolerashuns"] = []
    with pytest.raises(ApiError, match="tolerashuns") as raised:
        asyncio.run(api.create(body))
    assert raised.value.status == 400
    assert not raised.value.passing


def test_deleting_what_is_not_there_is_done(api: Api, owner: Owner) -> None:
    asyncio.run(api.delete("Job", owner.namespace, "no-such-job"))


def test_deleting_spares_a_newer_object_of_that_name(api: Api, owner: Owner) -> None:
    sweep, trial = of(owner)
    body = as_sweeps(configmaps.memory(Owner.of(sweep), trial, 1))
    name = body["metadata"]["name"]

    async def run() -> Body:
        await api.create(body)
        await api.delete("ConfigMap", owner.namespace, name, uid="00000000-0000-0000-0000-000000000000")
        return dict(await api.get("ConfigMap", owner.namespace, name))

    assert asyncio.run(run())["metadata"]["name"] == name


def test_annotations_are_merged_and_listed_by_label(api: Api, owner: Owner) -> None:
    sweep, trial = of(owner)
    body = as_sweeps(configmaps.memory(Owner.of(sweep), trial, 7))

    async def run() -> list[Any]:
        await api.create(body)
        await api.annotate("ConfigMap", owner.namespace, body["metadata"]["name"], {names.ENDED: "1.5"})
        return await api.all_of("ConfigMap", owner.namespace, f"{names.SWEEP_UID}={owner.uid}")

    (found,) = asyncio.run(run())
    assert bodies.annotated(found) == {names.ORDER: "7", names.ENDED: "1.5"}


def test_a_parallelism_of_zero_ends_the_pod_and_starts_no_other(
    api: Api, owner: Owner, kube_api: ApiClient, cluster: ClusterInfo
) -> None:
    sweep, trial = of(owner, runner={"image": cluster.images["runner"]})
    plan = trial_plan(sweep, trial, ServerFacts(url="http://10.0.0.7:8000", order=1))
    body = as_sweeps(runner.runner_job(sweep, trial, plan, image=cluster.images["runner"]))
    name = body["metadata"]["name"]

    async def run() -> Body:
        await api.create(body)
        return dict(await api.patch("Job", owner.namespace, name, {"spec": {"parallelism": 0}}))

    assert asyncio.run(run())["spec"]["parallelism"] == 0
    batch: Any = client.BatchV1Api(kube_api)
    assert batch.read_namespaced_job(name, owner.namespace).spec.pod_replacement_policy == "Failed"


def test_a_log_that_is_not_there_is_none(api: Api, owner: Owner) -> None:
    pod = {"metadata": {"namespace": owner.namespace, "name": "no-such-pod"}}
    assert asyncio.run(api.log(pod, "server")) is None


def test_events_about_an_object(api: Api, owner: Owner) -> None:
    body = {
        "metadata": {"name": "t.1", "namespace": owner.namespace},
        "involvedObject": {"kind": "ConfigMap", "name": "t", "namespace": owner.namespace, "uid": owner.uid},
        "reason": "Test",
        "message": "m",
        "type": "Normal",
    }

    async def run() -> list[Any]:
        await api.post_event({"apiVersion": "v1", "kind": "Event", **body})
        return await api.events(owner.namespace, owner.uid)

    assert [event["reason"] for event in asyncio.run(run())] == ["Test"]


def test_a_server_that_cannot_be_reached_is_an_error_that_passes(kube_api: ApiClient) -> None:
    settings: Any = copy.copy(kube_api.configuration)
    settings.host = "https://127.0.0.1:1"
    settings.retries = 0
    with pytest.raises(ApiError) as raised:
        Rest(ApiClient(settings)).json("GET", "/api")
    assert raised.value.passing
