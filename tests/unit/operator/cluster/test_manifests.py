"""What the operator creates: valid objects, restricted pods, deterministic names, nothing secret."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client

from goodput.analysis.job import JobInput
from goodput.analysis.packing import unpack
from goodput.analysis.schema.sweep import CellWithoutResult, StatesDocument
from goodput.operator.actions import StartAnalysis
from goodput.operator.cluster import names
from goodput.operator.cluster.errors import TemplateError
from goodput.operator.cluster.manifests import configmaps, runner, server, tasks
from goodput.operator.cluster.manifests.merge import merge_template
from goodput.operator.cluster.names import Owner
from goodput.operator.sweep import Sweep, TrialId
from goodput.operator.trialplan import results_target, trial_plan
from goodput.runner.contract import CanaryInput, ServerFacts, TrialPlan

Body = dict[str, Any]
Make = Callable[..., Any]


def plan_of(sweep: Sweep, trial: TrialId) -> TrialPlan:
    return trial_plan(sweep, trial, ServerFacts(url="http://10.0.0.7:8000", order=1))


def of_vllm(make_sweep: Make, make_vllm: Make, **changes: Any) -> tuple[Sweep, TrialId]:
    sweep = make_sweep(engines=[make_vllm(**changes)])
    return sweep, TrialId("0", sweep.configs[0].id, 1)


def everything(sweep: Sweep, trial: TrialId) -> Iterator[Body]:
    owner = Owner.of(sweep)
    yield server.server_deployment(sweep, trial, image="engines:1")
    yield runner.runner_job(sweep, trial, plan_of(sweep, trial), image="runner:1")
    yield tasks.canary_job(sweep, image="runner:1")
    yield tasks.analysis_job(sweep, 2, None, [trial], image="analysis:1")
    yield configmaps.memory(owner, trial, 3)
    yield configmaps.files(owner, "f", names.LOGS, {"a.json": b"{}", "b.zst": b"\x28\xb5\x2f\xfd"}, trial)


def pod_spec(body: Body) -> Body:
    found: Body = body["spec"]["template"]["spec"]
    return found


def test_objects_are_what_the_client_knows(sweep: Sweep, trial: TrialId) -> None:
    models = {"Deployment": client.V1Deployment, "Job": client.V1Job, "ConfigMap": client.V1ConfigMap}
    for body in everything(sweep, trial):
        model: Any = models[body["kind"]]
        model.model_validate(body)  # raises for a field it does not know


def test_every_object_is_owned_labelled_and_in_the_sweeps_namespace(sweep: Sweep, trial: TrialId) -> None:
    for body in everything(sweep, trial):
        meta = body["metadata"]
        assert meta["namespace"] == "ns"
        assert meta["labels"][names.SWEEP_UID] == sweep.uid
        (owner,) = meta["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("BenchmarkSweep", sweep.uid, True)


def test_pods_meet_the_restricted_profile(sweep: Sweep, trial: TrialId) -> None:
    for body in everything(sweep, trial):
        if body["kind"] == "ConfigMap":
            continue
        spec = pod_spec(body)
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_the_longest_names_fit_a_label(make_sweep: Make) -> None:
    owner = Owner("ns", "s" * 40, "uid")
    trial = TrialId("s64", "0123456789", 999)
    longest = [names.server_name(owner, trial), names.runner_name(owner, trial), names.analysis_name(owner, 999)]
    assert max(map(len, longest)) <= 63
    assert len({*longest, names.canary_name(owner), names.logs_name(owner, trial)}) == 5


def test_labels_name_the_trial(owner: Owner, trial: TrialId) -> None:
    assert names.trial_of(names.labels(owner, names.SERVER, trial)) == trial
    assert names.trial_of({names.BLOCK: "0"}) is None


class TestServer:
    def test_one_fresh_pod_whose_probes_allow_the_whole_start(self, sweep: Sweep, trial: TrialId) -> None:
        body = server.server_deployment(sweep, trial, image="engines:1")
        assert body["spec"]["replicas"] == 1
        assert body["spec"]["strategy"] == {"type": "Recreate"}
        (container,) = pod_spec(body)["containers"]
        probe = container["startupProbe"]
        assert probe["periodSeconds"] * probe["failureThreshold"] >= 1200
        assert "readinessProbe" not in container
        assert container["command"] == list(sweep.configs[0].command)
        assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"

    def test_grace_exceeds_the_shutdown_timeout_by_more_than_ten_seconds(self, sweep: Sweep, trial: TrialId) -> None:
        body = server.server_deployment(sweep, trial, image="engines:1")
        words = pod_spec(body)["containers"][0]["command"]
        shutdown = int(words[words.index("--shutdown-timeout") + 1])
        assert pod_spec(body)["terminationGracePeriodSeconds"] > shutdown + 10

    def test_a_vllm_pod_has_what_vllm_writes_to(self, make_sweep: Make, make_vllm: Make) -> None:
        sweep, trial = of_vllm(make_sweep, make_vllm)
        spec = pod_spec(server.server_deployment(sweep, trial, image="unused"))
        mounts = {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
        assert mounts == {"/tmp", "/cache", "/dev/shm"}
        shm = next(volume for volume in spec["volumes"] if volume["name"] == "shm")
        assert shm["emptyDir"] == {"medium": "Memory"}
        env = {entry["name"]: entry["value"] for entry in spec["containers"][0]["env"]}
        assert env["HOME"].startswith("/cache/")
        assert env["VLLM_SERVER_DEV_MODE"] == "1"
        assert "HF_HUB_OFFLINE" not in env

    def test_a_pod_of_the_baseline_reads_models_as_vllm_does(self, make_sweep: Make) -> None:
        engine = {"name": "baseline", "kind": "transformers", "image": "baseline:1"}
        model = {"name": "a/b", "cache": {"claimName": "models", "offline": True}}
        sweep = make_sweep(
            engines=[engine], configs=None, model={**model, "tokenSecretRef": {"name": "hub", "key": "t"}}
        )
        trial = TrialId("0", sweep.configs[0].id, 1)
        spec = pod_spec(server.server_deployment(sweep, trial, image="baseline:1"))
        (container,) = spec["containers"]
        assert container["command"][0] == "goodput-engine-transformers"
        assert container["resources"]["limits"] == {"nvidia.com/gpu": "1"}
        env = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert (env["HF_HOME"], env["HF_HUB_OFFLINE"]) == ("/models", "1")
        assert "HF_TOKEN" in env
        assert not any(name.startswith("VLLM") for name in env)
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp", "/cache", "/models"}

    def test_gpus_of_the_config_are_asked_for(self, make_sweep: Make, make_vllm: Make) -> None:
        sweep, trial = of_vllm(make_sweep, make_vllm, args={"max_num_seqs": 64, "tensor_parallel_size": 2})
        limits = pod_spec(server.server_deployment(sweep, trial, image="x"))["containers"][0]["resources"]["limits"]
        assert limits == {"memory": "8Gi", "nvidia.com/gpu": "2"}

    def test_model_and_compile_caches_are_mounted(self, make_sweep: Make, make_vllm: Make) -> None:
        engine = make_vllm(compileCache={"mode": "shared", "claimName": "compiled"})
        model = {"name": "a/b", "cache": {"claimName": "models", "offline": True}}
        token = {"tokenSecretRef": {"name": "hub", "key": "token"}}
        sweep = make_sweep(engines=[engine], model={**model, **token})
        trial = TrialId("0", sweep.configs[0].id, 1)
        spec = pod_spec(server.server_deployment(sweep, trial, image="x"))
        env = {entry["name"]: entry for entry in spec["containers"][0]["env"]}
        assert env["HF_HOME"]["value"] == "/models"
        assert env["HF_HUB_OFFLINE"]["value"] == "1"
        assert env["VLLM_CACHE_ROOT"]["value"].startswith("/compiled/")
        assert env["HF_TOKEN"]["valueFrom"] == {"secretKeyRef": {"name": "hub", "key": "token"}}
        claims = {v["persistentVolumeClaim"]["claimName"] for v in spec["volumes"] if "persistentVolumeClaim" in v}
        assert claims == {"models", "compiled"}

    def test_where_it_may_run(self, make_sweep: Make, make_vllm: Make) -> None:
        engine = make_vllm(
            nodeSelector={"gpu": "h100"},
            tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            runtimeClassName="nvidia",
        )
        sweep = make_sweep(engines=[engine], scheduling={"priorityClassName": "high"})
        trial = TrialId("0", sweep.configs[0].id, 1)
        spec = pod_spec(server.server_deployment(sweep, trial, image="x"))
        assert spec["nodeSelector"] == {"gpu": "h100"}
        assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
        assert (spec["runtimeClassName"], spec["priorityClassName"]) == ("nvidia", "high")

    def test_the_users_env_wins_and_the_template_is_merged(self, make_sweep: Make, make_vllm: Make) -> None:
        template = {
            "metadata": {"annotations": {"team": "x"}},
            "spec": {
                "containers": [
                    {"name": "server", "volumeMounts": [{"name": "extra", "mountPath": "/extra"}]},
                    {"name": "side", "image": "side:1"},
                ],
                "volumes": [{"name": "extra", "emptyDir": {}}, {"name": "shm", "emptyDir": {"sizeLimit": "1Gi"}}],
                "tolerations": [{"key": "b", "operator": "Exists"}],
            },
        }
        engine = make_vllm(
            env=[{"name": "HF_HOME", "value": "/mine"}],
            podTemplate=template,
            tolerations=[{"key": "a", "operator": "Exists"}],
        )
        sweep, trial = of_vllm(make_sweep, lambda **_: engine)
        body = server.server_deployment(sweep, trial, image="x")
        meta, spec = body["spec"]["template"]["metadata"], pod_spec(body)
        assert meta["annotations"]["team"] == "x"
        assert meta["annotations"]["prometheus.io/scrape"] == "true"
        assert body["spec"]["selector"]["matchLabels"].items() <= meta["labels"].items()
        first, second = spec["containers"]
        assert {"name": "HF_HOME", "value": "/mine"} in first["env"]
        assert {"/tmp", "/cache", "/dev/shm", "/extra"} == {mount["mountPath"] for mount in first["volumeMounts"]}
        assert second == {"name": "side", "image": "side:1"}
        assert next(v for v in spec["volumes"] if v["name"] == "shm") == {
            "name": "shm",
            "emptyDir": {"sizeLimit": "1Gi"},
        }
        assert [one["key"] for one in spec["tolerations"]] == ["a", "b"]


class TestMerge:
    def test_nothing_over_it_changes_nothing(self) -> None:
        template = {"spec": {"containers": [{"name": "a"}]}}
        assert merge_template(template, None) == template
        assert merge_template(template, {}) == template

    def test_null_removes_a_field(self) -> None:
        assert merge_template({"spec": {"a": 1, "b": 2}}, {"spec": {"a": None}}) == {"spec": {"b": 2}}

    def test_an_item_without_its_key_is_refused_by_name(self) -> None:
        with pytest.raises(TemplateError, match="every item of volumes needs a name"):
            merge_template({"spec": {"volumes": [{"name": "a"}]}}, {"spec": {"volumes": [{"emptyDir": {}}]}})

    def test_a_variable_is_replaced_whole(self) -> None:
        ours = {"env": [{"name": "A", "value": "1"}]}
        over = {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}
        assert merge_template(ours, over)["env"] == over["env"]


class TestRunner:
    def test_a_second_pod_starts_only_when_the_first_has_ended(self, sweep: Sweep, trial: TrialId) -> None:
        spec = runner.runner_job(sweep, trial, plan_of(sweep, trial), image="runner:1")["spec"]
        assert spec["podReplacementPolicy"] == "Failed"
        assert spec["backoffLimit"] == 3
        assert "podFailurePolicy" not in spec
        assert spec["template"]["spec"]["restartPolicy"] == "OnFailure"
        assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 120

    def test_the_backstop_lies_beyond_the_runners_own_deadline(self, sweep: Sweep, trial: TrialId) -> None:
        plan = plan_of(sweep, trial)
        spec = runner.runner_job(sweep, trial, plan, image="runner:1")["spec"]
        assert spec["activeDeadlineSeconds"] > plan.deadline_seconds + plan.upload_hold_seconds

    def test_credentials_come_from_the_secret_alone(self, sweep: Sweep, trial: TrialId) -> None:
        body = runner.runner_job(sweep, trial, plan_of(sweep, trial), image="runner:1")
        (container,) = pod_spec(body)["containers"]
        assert container["envFrom"] == [{"secretRef": {"name": "bench-s3"}}]
        assert {entry["name"] for entry in container["env"]} == {"HOME"}

    def test_storage_follows_the_largest_cell(self, make_sweep: Make) -> None:
        work = {"promptTokens": [64], "outputTokens": [512], "window": {"duration": "60s"}}
        small = make_sweep(workload={**work, "requestRate": [1]})
        large = make_sweep(workload={**work, "requestRate": [1, 50]})
        assert runner.spool_bytes(large.loads) > runner.spool_bytes(small.loads)
        events = 50 * (large.loads[-1].seconds + large.loads[-1].drain_seconds) * 512 * 300
        assert runner.spool_bytes(large.loads) > events

    def test_a_closed_loop_has_room_for_fast_streams(self, make_sweep: Make) -> None:
        work = {"promptTokens": [64], "outputTokens": [8], "concurrency": [100], "window": {"duration": "10s"}}
        assert runner.spool_bytes(make_sweep(workload=work).loads) > 100 * 10 * 200 * 300

    def test_the_spool_limit_lies_below_the_pods_storage(self, sweep: Sweep, trial: TrialId) -> None:
        (container,) = pod_spec(runner.runner_job(sweep, trial, plan_of(sweep, trial), image="r"))["containers"]
        words = container["command"]
        limit = int(words[words.index("--spool-limit") + 1])
        assert 0 < limit < int(container["resources"]["limits"]["ephemeral-storage"])


class TestTasks:
    def test_each_log_pack_is_mounted_under_its_name(self, sweep: Sweep, trial: TrialId) -> None:
        body = tasks.analysis_job(sweep, 1, "0", [trial], image="analysis:1")
        spec = pod_spec(body)
        mounts = {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
        assert f"/logs/{trial.name}" in mounts
        volume = next(v for v in spec["volumes"] if v["name"] == trial.name)
        assert volume["configMap"] == {"name": names.logs_name(Owner.of(sweep), trial), "optional": True}

    def test_the_input_is_what_the_analysis_reads(self, sweep: Sweep, trial: TrialId) -> None:
        action = StartAnalysis(generation=2, block=None, states=StatesDocument(generation=2, final=True), logs=(trial,))
        (data,) = tasks.analysis_input(sweep, action).values()
        read = JobInput.model_validate_json(data)
        assert (read.sweep, read.results.uri, read.logs) == (sweep.folder, "s3://bench/x", (trial.name,))
        assert read.states == action.states

    def test_the_runners_template_reaches_the_analysis_without_its_containers(self, make_sweep: Make) -> None:
        template = {
            "metadata": {"labels": {"azure.workload.identity/use": "true"}},
            "spec": {"containers": [{"name": "runner", "env": []}], "schedulerName": "other"},
        }
        sweep = make_sweep(runner={"podTemplate": template})
        body = tasks.analysis_job(sweep, 1, None, [], image="analysis:1")
        assert body["spec"]["template"]["metadata"]["labels"]["azure.workload.identity/use"] == "true"
        assert [one["name"] for one in pod_spec(body)["containers"]] == ["analysis"]
        assert pod_spec(body)["schedulerName"] == "other"


def test_files_that_are_no_text_become_binary(owner: Owner) -> None:
    body = configmaps.files(owner, "f", names.INPUT, {"a": b"text", "b": b"\xff\x00"})
    assert body["data"] == {"a": "text"}
    assert body["binaryData"] == {"b": "/wA="}


def test_a_file_that_is_large_is_packed_and_read_back(owner: Owner) -> None:
    large = b'{"cells": "' + b"abc " * 500_000 + b'"}'
    body = configmaps.files(owner, "f", names.INPUT, {"a": large, "b": b"{}"})
    assert len(json.dumps(body)) < 1 << 20
    assert unpack(b64decode(body["binaryData"]["a"])) == large
    assert [configmaps.read(body, name) for name in ("a", "b", "c")] == [large, b"{}", None]


def test_the_largest_sweep_fits_its_config_maps(make_sweep: Make) -> None:
    values = [str(number) for number in range(1024, 1024 + 30)]
    grid = {"max_num_batched_tokens": values, "block_size": [16, 32], "seed": list(range(1, 17))}
    work = {"promptTokens": [64], "outputTokens": [8], "requestRate": [1, 2, 3, 4], "window": {"duration": "3s"}}
    sweep = make_sweep(configs={"grid": grid}, workload=work, plan={"blocks": {"min": 5}, "sentinel": "off"})
    assert sweep.planned_cells > 19_000
    cells = tuple(
        CellWithoutResult(config=config.id, load=step.load.id, block=block, state="not_run", reason="Cancelled")
        for config in sweep.configs
        for step in sweep.loads
        for block in sweep.blocks
    )
    action = StartAnalysis(generation=1, block=None, states=StatesDocument(generation=1, cells=cells))
    owner = Owner.of(sweep)
    canary = {"canary.json": CanaryInput(results=results_target(sweep), spec=sweep.document()).to_json()}
    for data in (tasks.analysis_input(sweep, action), canary):
        assert len(json.dumps(configmaps.files(owner, "f", names.INPUT, data))) < 1 << 20


def test_no_manifest_holds_a_secrets_value(make_sweep: Make, make_vllm: Make) -> None:
    env = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    sweep, trial = of_vllm(make_sweep, make_vllm, env=env)
    text = json.dumps(list(everything(sweep, trial)))
    assert '"value": null' not in text
    assert "secretKeyRef" in text


def test_key_and_authority_of_an_external_server_are_in_the_runners_pod_alone(make_sweep: Make) -> None:
    external = {"url": "https://x", "apiKeySecretRef": {"name": "g"}, "caSecretRef": {"name": "g-ca", "key": "crt"}}
    sweep = make_sweep(engines=[{"name": "g", "kind": "external", "external": external}], configs=None)
    trial = TrialId("0", sweep.configs[0].id, 1)
    engine = sweep.engines["g"].external
    assert engine is not None
    facts = runner.external_facts(engine, "https://x", 4)
    plan = trial_plan(sweep, trial, facts)
    assert (plan.server.api_key_env, plan.server.ca_file) == ("GOODPUT_G_TOKEN", "/ca/ca.pem")
    spec = pod_spec(runner.runner_job(sweep, trial, plan, image="runner:1"))
    (container,) = spec["containers"]
    secret = {"name": "GOODPUT_G_TOKEN", "valueFrom": {"secretKeyRef": {"name": "g", "key": "token"}}}
    assert secret in container["env"]
    assert {"name": "ca", "mountPath": "/ca", "readOnly": True} in container["volumeMounts"]
    source = {"secretName": "g-ca", "items": [{"key": "crt", "path": "ca.pem"}]}
    assert {"name": "ca", "secret": source} in spec["volumes"]
    for other in (tasks.canary_job(sweep, image="i"), tasks.analysis_job(sweep, 1, None, [trial], image="i")):
        assert "GOODPUT_G_TOKEN" not in json.dumps(other)
