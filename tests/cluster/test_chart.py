"""The chart with real helm: strict values, every switch, and the same objects as `kubectl apply -k manifests`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import ApiClient
from testcluster.info import ClusterInfo

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/goodput"
Body = dict[str, Any]
Template = Callable[..., list[Body]]


@pytest.fixture
def helm(cluster: ClusterInfo) -> Callable[..., subprocess.CompletedProcess[str]]:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([cluster.helm, *arguments], capture_output=True, text=True, check=False)

    return call


@pytest.fixture
def template(helm: Callable[..., subprocess.CompletedProcess[str]]) -> Template:
    def render(*arguments: str) -> list[Body]:
        done = helm("template", "goodput", str(CHART), "-n", "goodput-system", *arguments)
        assert done.returncode == 0, done.stderr
        return [body for body in yaml.safe_load_all(done.stdout) if body]

    return render


def by_kind(bodies: list[Body]) -> dict[str, list[Body]]:
    kinds: dict[str, list[Body]] = {}
    for body in bodies:
        kinds.setdefault(body["kind"], []).append(body)
    return kinds


def key(body: Body) -> tuple[str, str, str]:
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


def test_lint(helm: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "values",
    [
        "replicas=2",
        "image.repositry=x",
        "image.pullPolicy=Sometimes",
        "image.digest=sha256:short",
        "watchNamespaces={Upper}",
        "metrics.port=80",
        "verbose=yes",
    ],
)
def test_values_are_checked(values: str, helm: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = helm("template", "goodput", str(CHART), "--set", values)
    assert done.returncode != 0
    assert values.partition("=")[0].rpartition(".")[2] in done.stderr


def test_the_crd_is_the_one_in_manifests_and_is_kept(template: Template) -> None:
    (crd,) = by_kind(template())["CustomResourceDefinition"]
    assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert crd == yaml.safe_load((ROOT / "manifests/crd.yaml").read_text())
    assert "CustomResourceDefinition" not in by_kind(template("--set", "crds.install=false"))
    (bare,) = by_kind(template("--set", "crds.keep=false"))["CustomResourceDefinition"]
    assert "annotations" not in bare["metadata"]


def test_kustomize_installs_the_same(template: Template, cluster: ClusterInfo) -> None:
    done = subprocess.run(
        [cluster.kubectl, "kustomize", str(ROOT / "manifests")], capture_output=True, text=True, check=True
    )
    ours = {key(body): body for body in yaml.safe_load_all(done.stdout)}
    theirs = {key(body): body for body in template()}
    theirs["CustomResourceDefinition", "", "benchmarksweeps.goodput.dev"]["metadata"].pop("annotations")
    namespace = ours.pop(("Namespace", "", "goodput-system"))
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    assert ours == theirs


def test_the_dashboard_is_in_the_config_map(template: Template) -> None:
    (body,) = by_kind(template())["ConfigMap"]
    source = CHART / "dashboards/sweep-live.json"
    assert json.loads(body["data"]["sweep-live.json"]) == json.loads(source.read_text())
    assert body["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert "ConfigMap" not in by_kind(template("--set", "dashboards.enabled=false"))


def test_all_namespaces_need_a_cluster_role_and_some_need_roles(template: Template) -> None:
    wide = by_kind(template())
    assert len(wide["ClusterRole"]) == len(wide["ClusterRoleBinding"]) == 1
    assert "Role" not in wide
    narrow = by_kind(template("--set", "watchNamespaces={a,b}"))
    assert "ClusterRole" not in narrow
    assert [role["metadata"]["namespace"] for role in narrow["Role"]] == ["a", "b"]
    assert [binding["subjects"][0]["namespace"] for binding in narrow["RoleBinding"]] == ["goodput-system"] * 2
    assert narrow["Role"][0]["rules"] == wide["ClusterRole"][0]["rules"]
    (container,) = narrow["Deployment"][0]["spec"]["template"]["spec"]["containers"]
    assert {"--namespace=a", "--namespace=b"} <= set(container["args"])


def test_secrets_are_out_of_reach(template: Template) -> None:
    (role,) = by_kind(template())["ClusterRole"]
    for rule in role["rules"]:
        assert "secrets" not in rule["resources"]
        assert "*" not in [*rule["resources"], *rule["verbs"], *rule["apiGroups"]]


def test_pod_monitors_where_prometheus_knows_them(template: Template) -> None:
    assert "PodMonitor" not in by_kind(template())
    found = by_kind(template("--api-versions", "monitoring.coreos.com/v1"))["PodMonitor"]
    assert [body["metadata"]["name"] for body in found] == ["goodput", "goodput-sweeps"]
    off = template("--api-versions", "monitoring.coreos.com/v1", "--set", "metrics.podMonitor.enabled=false")
    assert "PodMonitor" not in by_kind(off)


def test_a_workload_account_per_namespace(
    template: Template, helm: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    on = "workloadAccount.create=true"
    accounts = by_kind(template("--set", "watchNamespaces={a,b}", "--set", on))["ServiceAccount"]
    assert [body["metadata"].get("namespace") for body in accounts] == ["goodput-system", "a", "b"]
    assert accounts[1]["automountServiceAccountToken"] is False
    done = helm("template", "goodput", str(CHART), "--set", on)
    assert "needs watchNamespaces" in done.stderr


def test_images_by_tag_or_digest(template: Template) -> None:
    digest = f"sha256:{'0' * 64}"
    (body,) = by_kind(template("--set", f"image.repository=x/y,image.digest={digest}"))["Deployment"]
    assert body["spec"]["template"]["spec"]["containers"][0]["image"] == f"x/y@{digest}"
    (body,) = by_kind(template("--set", "image.repository=x/y,image.tag=v1"))["Deployment"]
    assert body["spec"]["template"]["spec"]["containers"][0]["image"] == "x/y:v1"


def test_the_api_server_takes_every_object_in_a_restricted_namespace(
    template: Template, namespace: str, kube_api: ApiClient, cluster: ClusterInfo
) -> None:
    del kube_api  # the namespace fixture needs it
    bodies = [body for body in template("--set", "crds.install=false", "-n", namespace) if body["kind"] != "Namespace"]
    done = subprocess.run(
        [
            cluster.kubectl,
            "--kubeconfig",
            cluster.kubeconfig,
            "apply",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            "-",
        ],
        input="\n---\n".join(json.dumps(body) for body in bodies),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "would violate PodSecurity" not in done.stderr
