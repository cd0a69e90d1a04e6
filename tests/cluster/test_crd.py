"""The CRD against a real API server: each rule with one accepted and one rejected object, changes, defaults.

Objects are sent as dry runs, so that no operator sees them; the few that must exist are suspended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException

from goodput.operator.spec.messages import CHANGE_RULES, RULES
from goodput.operator.spec.parse import parse_spec

ROOT = Path(__file__).parents[2]
CRD: dict[str, Any] = yaml.safe_load((ROOT / "manifests/crd.yaml").read_text())
CASES: dict[str, Any] = yaml.safe_load((ROOT / "tests/unit/operator/spec/rule_cases.yaml").read_text())
NAME = CRD["metadata"]["name"]
GROUP, VERSION, PLURAL = "goodput.dev", "v1alpha1", "benchmarksweeps"
DEADLINE_S = 30.0
Body = dict[str, Any]

pytestmark = pytest.mark.cluster


class Door:
    """The API server as users meet it: strict about unknown fields, everything a dry run unless asked."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self.custom: Any = client.CustomObjectsApi(api)
        self.namespace = namespace

    def create(self, body: Body, *, keep: bool = False) -> Body:
        options = {"field_validation": "Strict", **({} if keep else {"dry_run": "All"})}
        made: Body = self.custom.create_namespaced_custom_object(
            GROUP, VERSION, self.namespace, PLURAL, body, **options
        )
        return made

    def replace(self, body: Body) -> Body:
        """Replace what is there now: an operator that runs in this cluster writes the status meanwhile."""
        name = body["metadata"]["name"]
        for _ in range(20):
            now = self.custom.get_namespaced_custom_object(GROUP, VERSION, self.namespace, PLURAL, name)
            wanted = {**body, "metadata": now["metadata"]}
            try:
                made: Body = self.custom.replace_namespaced_custom_object(
                    GROUP, VERSION, self.namespace, PLURAL, name, wanted, dry_run="All", field_validation="Strict"
                )
            except ApiException as error:
                if error.status != 409:
                    raise
            else:
                return made
        pytest.fail("the object changes too often")

    def refusal(self, call: Any, body: Body) -> str:
        """The API server's message for a body that it refuses."""
        with pytest.raises(ApiException) as refused:
            call(body)
        assert refused.value.status in (400, 422)
        assert refused.value.body is not None
        message: str = json.loads(refused.value.body)["message"]
        return message


@pytest.fixture(scope="module")
def crd(kube_api: ApiClient) -> Iterator[None]:
    """The CRD of this tree; taken away again where this module brought it."""
    extensions: Any = client.ApiextensionsV1Api(kube_api)
    custom: Any = client.CustomObjectsApi(kube_api)
    found = [one for one in extensions.list_custom_resource_definition().items if one.metadata.name == NAME]
    if found and _served(extensions) != CRD["spec"]["versions"][0]["schema"]:
        assert not custom.list_cluster_custom_object(GROUP, VERSION, PLURAL)["items"], "another CRD is in use"
        extensions.delete_custom_resource_definition(NAME)
        _until(lambda: not any(one.metadata.name == NAME for one in extensions.list_custom_resource_definition().items))
        found = []
    if not found:
        extensions.create_custom_resource_definition(CRD)
    _until(lambda: _answers(custom))
    yield
    if not found:
        extensions.delete_custom_resource_definition(NAME)


@pytest.fixture
def door(kube_api: ApiClient, crd: None) -> Door:
    """For dry runs: they leave nothing, so that any namespace will do."""
    return Door(kube_api, "default")


@pytest.fixture
def own_door(kube_api: ApiClient, namespace: str, crd: None) -> Door:
    """For objects that must exist, in a namespace of their own."""
    return Door(kube_api, namespace)


def _served(extensions: Any) -> Body:
    """The schema that the API server has, as written: the typed client would rename its extensions."""
    raw = extensions.read_custom_resource_definition(NAME, _preload_content=False)
    schema: Body = json.loads(raw.data)["spec"]["versions"][0]["schema"]
    return schema


def _answers(custom: Any) -> bool:
    try:
        custom.list_cluster_custom_object(GROUP, VERSION, PLURAL)
    except ApiException as error:
        if error.status != 404:
            raise
        return False
    return True


def _until(done: Any) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not done():
        if time.monotonic() > deadline:
            pytest.fail(f"the API server did not take the CRD within {DEADLINE_S} s")
        time.sleep(0.05)


def body(name: str = "t", **parts: Any) -> Body:
    spec = {key: value for key, value in {**CASES["base"], **parts}.items() if value is not None}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "BenchmarkSweep", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["rule"]) for case in CASES["rules"]])
def test_each_rule_refuses_in_the_words_of_the_table_and_takes_its_counterpart(case: Body, door: Door) -> None:
    message = door.refusal(door.create, body(case.get("name", "t"), **case["rejected"]))
    assert RULES[case["rule"]].text in message
    assert door.create(body(case.get("accepted_name", "t"), **case["accepted"]))["spec"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["field"]) for case in CASES["bounds"]])
def test_the_schema_refuses_and_names_the_field(case: Body, door: Door) -> None:
    assert case["field"] in door.refusal(door.create, body(**case["rejected"]))
    assert door.create(body(**case["accepted"]))["spec"]


def test_an_unknown_field_is_refused(door: Door) -> None:
    message = door.refusal(door.create, body(slo={"ttft": "1s", "tttf": "1s"}))
    assert 'unknown field "spec.slo.tttf"' in message


def test_defaults_are_those_of_the_models(door: Door) -> None:
    made = door.create(body())
    assert parse_spec(made) == parse_spec(body())
    assert made["spec"]["plan"]["blocks"] == {"min": 3}
    assert made["spec"]["workload"]["warmup"] == {"max": "2m"}
    partly = door.create(body(plan={"parallelism": 2}))
    assert partly["spec"]["plan"]["retries"] == 2


#: Examples for `goodput run`, which starts programs: in a cluster their engines need an image.
ON_ONE_MACHINE = {"baseline-vs-vllm.yaml", "vllm-cpu.yaml"}


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob("examples/*.yaml"), *ROOT.glob("manifests/samples/*.yaml")]), ids=lambda path: path.name
)
def test_examples_and_samples_are_accepted(path: Path, door: Door) -> None:
    example = yaml.safe_load(path.read_text())
    if path.name in ON_ONE_MACHINE:
        for engine in example["spec"]["engines"]:
            engine["image"] = "registry/engine:v0.32.0"
    assert door.create(example)["spec"]


FULL: Body = {
    "suspend": True,
    "plan": {"blocks": {"min": 2}},
    "configs": CASES["base"]["configs"],
    "results": {"uri": "s3://b/x", "endpoint": "http://s3:9000", "region": "r", "serviceAccountName": "a"},
}
#: By rule: a changed value, at a dotted path below spec. None takes the field away.
CHANGES: dict[str, list[tuple[str, Any]]] = {
    "immutable:spec.model": [("model.name", "other"), ("model.revision", "main")],
    "immutable:spec.engines": [
        ("engines.0.image", "other"),
        ("engines.0.args", None),
        ("engines.0.podTemplate", {"spec": {"dnsPolicy": "None"}}),
    ],
    "immutable:spec.configs": [("configs.grid.max_num_batched_tokens", [2048]), ("configs", None)],
    "immutable:spec.workload": [("workload.requestRate", [2, 4, 8]), ("workload.leadIn", "1s")],
    "immutable:spec.slo": [("slo.ttft", "501ms"), ("slo.e2e", "1s"), ("slo.attainment", 0.8)],
    "immutable:spec.objective": [("objective.tieBreak", "ttftP95")],
    "immutable:spec.runner": [("runner.image", "other"), ("runner.podTemplate", {"spec": {"dnsPolicy": "None"}})],
    "immutable:spec.scheduling": [("scheduling.priorityClassName", "high")],
    "immutable:spec.plan.strategy": [("plan.strategy", "race")],
    "immutable:spec.plan.indifference": [("plan.indifference", 0.1)],
    "immutable:spec.plan.retries": [("plan.retries", 3)],
    "immutable:spec.plan.sentinel": [("plan.sentinel", "on")],
    "immutable:spec.plan.outputCheck": [("plan.outputCheck", "on")],
    "immutable:spec.plan.blocks.min": [("plan.blocks.min", 3), ("plan", None)],
    "immutable:spec.results.uri": [("results.uri", "s3://b/y")],
    "immutable:spec.results.endpoint": [("results.endpoint", "http://other"), ("results.endpoint", None)],
    "immutable:spec.results.region": [("results.region", "q"), ("results.region", None)],
    "immutable:spec.results.serviceAccountName": [
        ("results.serviceAccountName", "b"),
        ("results.serviceAccountName", None),
    ],
    "cancel": [("cancel", False)],
}
ALLOWED = [
    ("suspend", False),
    ("cancel", True),
    ("budget", {"maxTrials": 5, "deadline": "8h"}),
    ("retention", {"keepFailedPods": True, "ttlAfterFinished": "1h"}),
    ("plan.parallelism", 4),
    ("plan.blocks.max", 20),
    ("results.credentialsSecretRef", {"name": "s"}),
]


def changed(made: Body, path: str, value: Any) -> Body:
    """A copy with one field set, or taken away where the value is None."""
    copy: Any = json.loads(json.dumps(made))
    node, *parents = copy["spec"], *path.split(".")[:-1]
    for part in parents:
        node = node[int(part)] if part.isdigit() else node[part]
    last = path.rpartition(".")[2]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return {"apiVersion": copy["apiVersion"], "kind": copy["kind"], "metadata": copy["metadata"], "spec": copy["spec"]}


def test_what_is_immutable_stays_and_the_rest_may_change(own_door: Door) -> None:
    assert set(CHANGES) == {rule.id for rule in CHANGE_RULES}
    made = own_door.create(body(**FULL), keep=True)
    cancelled = own_door.create(body("cancelled", **{**FULL, "cancel": True}), keep=True)
    for rule_id, edits in CHANGES.items():
        for path, value in edits:
            old = cancelled if rule_id == "cancel" else made
            message = own_door.refusal(own_door.replace, changed(old, path, value))
            assert RULES[rule_id].text in message, (path, value)
    for path, value in ALLOWED:
        assert own_door.replace(changed(made, path, value))["spec"], path


def test_optional_fields_cannot_be_added_later(own_door: Door) -> None:
    made = own_door.create(body(suspend=True, configs=None), keep=True)
    for path, value in (
        ("configs", {"list": [{}]}),
        ("results.endpoint", "http://s3:9000"),
        ("results.region", "r"),
        ("results.serviceAccountName", "a"),
    ):
        message = own_door.refusal(own_door.replace, changed(made, path, value))
        assert RULES[f"immutable:spec.{path}"].text in message


def test_status_has_a_schema_of_its_own(own_door: Door) -> None:
    own_door.create(body(suspend=True), keep=True)
    status = {"phase": "Running", "progress": "3/16", "best": {"label": "x", "interval": [1.0, 2.0]}, "unknown": 1}
    made = own_door.custom.patch_namespaced_custom_object_status(
        GROUP, VERSION, own_door.namespace, PLURAL, "t", {"status": status}
    )
    assert made["status"] == {key: value for key, value in status.items() if key != "unknown"}
    with pytest.raises(ApiException, match="Unsupported value"):
        own_door.custom.patch_namespaced_custom_object_status(
            GROUP, VERSION, own_door.namespace, PLURAL, "t", {"status": {"phase": "Dancing"}}
        )
