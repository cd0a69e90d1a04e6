"""The test cluster itself: a node that runs restricted pods of our images, and an S3 server that pods reach."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import obstore
import pytest
from kubernetes import client, watch
from kubernetes.client import ApiClient
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store
from testcluster.info import TARGETS, ClusterInfo

pytestmark = pytest.mark.cluster
POD_S = 60
RESTRICTED: dict[str, Any] = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(name: str, image: str, code: str) -> dict[str, Any]:
    """A restricted pod that runs Python code once."""
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", code],
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    spec = {
        "restartPolicy": "Never",
        "enableServiceLinks": False,
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def run_to_end(kube_api: ApiClient, namespace: str, body: dict[str, Any]) -> tuple[str, str]:
    """Phase and log of a pod that has ended."""
    core: Any = client.CoreV1Api(kube_api)
    core.create_namespaced_pod(namespace, body)
    name = body["metadata"]["name"]
    field = f"metadata.name={name}"
    watcher: Any = watch.Watch  # the client's untyped part
    events = watcher().stream(core.list_namespaced_pod, namespace, field_selector=field, timeout_seconds=POD_S)
    for event in events:
        phase = event["object"].status.phase
        if phase in {"Succeeded", "Failed"}:
            return phase, core.read_namespaced_pod_log(name, namespace)
    pytest.fail(f"pod {name} has not ended: {core.read_namespaced_pod(name, namespace).status}")


def test_the_node_is_ready(kube_api: ApiClient) -> None:
    core: Any = client.CoreV1Api(kube_api)
    nodes = core.list_node().items
    conditions = {item.type: item.status for node in nodes for item in node.status.conditions}
    assert conditions["Ready"] == "True"


@pytest.mark.parametrize("target", TARGETS)
def test_a_restricted_pod_of_each_image_has_all_that_its_part_imports(
    kube_api: ApiClient, namespace: str, cluster: ClusterInfo, target: str
) -> None:
    code = (
        "import importlib, os, pkgutil\n"
        f"part = importlib.import_module('goodput.{target}')\n"
        "names = [item.name for item in pkgutil.walk_packages(part.__path__, part.__name__ + '.')]\n"
        # the command on one machine is not for these images, torch has its own; __main__ would start the program
        "parts = ('operator.local', 'operator.cli', 'operator.virtual', 'operator.calibration')\n"
        "others = tuple(f'goodput.{name}' for name in (*parts, 'engines.calibration', 'engines.transformers'))\n"
        "names = [name for name in names if not name.startswith(others) and not name.endswith('__main__')]\n"
        "for name in names: importlib.import_module(name)\n"
        "print(os.getuid(), len(names) > 0)\n"
    )
    phase, log = run_to_end(kube_api, namespace, pod("import", cluster.images[target], code))
    assert (phase, log.strip().splitlines()[-1]) == ("Succeeded", "65532 True"), log


def test_a_pod_that_is_not_restricted_is_refused(kube_api: ApiClient, namespace: str, cluster: ClusterInfo) -> None:
    body = pod("refused", cluster.images["runner"], "pass")
    body["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    core: Any = client.CoreV1Api(kube_api)
    with pytest.raises(client.ApiException, match="violates PodSecurity"):
        core.create_namespaced_pod(namespace, body)


def test_a_pod_reaches_the_api_by_its_service_and_the_s3_server(
    kube_api: ApiClient, namespace: str, cluster: ClusterInfo
) -> None:
    code = (
        "import os, ssl, urllib.request, urllib.error\n"
        "host = os.environ['KUBERNETES_SERVICE_HOST']\n"
        "ca = '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt'\n"
        "context = ssl.create_default_context(cafile=ca)\n"
        "print(urllib.request.urlopen(f'https://{host}/readyz', context=context, timeout=10).read().decode())\n"
        f"try: urllib.request.urlopen({cluster.s3.endpoint_pods!r}, timeout=10)\n"
        "except urllib.error.HTTPError as answer: print(answer.code)\n"
    )
    phase, log = run_to_end(kube_api, namespace, pod("reach", cluster.images["runner"], code))
    assert (phase, log.split()) == ("Succeeded", ["ok", "403"])  # 403: the S3 server wants a signature


def test_the_s3_server_creates_an_object_once(s3: S3Store, namespace: str) -> None:
    key = f"{namespace}/once.json"
    obstore.put(s3, key, b"first", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(s3, key, b"second", mode="create")
    assert obstore.get(s3, key).bytes() == b"first"
    obstore.delete(s3, key)


def test_a_second_up_is_quick_and_changes_nothing(kube_api: ApiClient, cluster: ClusterInfo) -> None:
    if cluster.external:
        return  # nothing of it is started by us
    core: Any = client.CoreV1Api(kube_api)
    before = core.read_namespace("kube-system").metadata.uid
    command = [sys.executable, "-m", "testcluster", "up"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "the cluster is up" in done.stderr
    assert json.loads(done.stdout)["s3"]["access_key"] == cluster.s3.access_key
    assert core.read_namespace("kube-system").metadata.uid == before


def test_the_node_has_as_many_gpus_as_asked_for(kube_api: ApiClient, cluster: ClusterInfo) -> None:
    if cluster.external:
        return  # its nodes have what they have
    core: Any = client.CoreV1Api(kube_api)
    name = core.list_node().items[0].metadata.name
    before = core.read_node(name).status.capacity.get("nvidia.com/gpu", "0")
    for count in ("3", before):
        command = [sys.executable, "-m", "testcluster", "up", "--fake-gpus", count]
        subprocess.run(command, check=True, capture_output=True)
        status = core.read_node(name).status
        assert status.capacity["nvidia.com/gpu"] == status.allocatable["nvidia.com/gpu"] == count
