"""Whole sweeps on the real cluster: the operator is a pod that the chart installed, results go to a real S3 server."""

from __future__ import annotations

import io
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from kubernetes import client, watch
from kubernetes.client import ApiClient
from obstore.store import S3Store
from testcluster import faults as node
from testcluster import layout
from testcluster.info import ClusterInfo

GROUP = ("goodput.dev", "v1alpha1")
PLURAL = "benchmarksweeps"
SYSTEM = "goodput-system"
ROOT = Path(__file__).parents[3]
Body = dict[str, Any]


@dataclass
class Bench:
    """One namespace of one test, with everything a user of the product would reach for."""

    info: ClusterInfo
    api: ApiClient
    namespace: str
    store: S3Store  # the test bucket
    endpoint: str  # of the S3 server as pods reach it; a test may put a fault in between
    seen: list[str] = field(default_factory=list)  # phases, in the order in which they were seen

    @property
    def uri(self) -> str:
        return f"s3://{self.info.s3.bucket}/{self.namespace}"

    def sweep(self, name: str = "t", **changes: Any) -> Body:
        """A small sweep of the simulated engine: 1 config, 1 load, 1 block, unless changed.

        With ``profile="fixed-rate"`` a warm-up is not steady before its cap: long enough to be seen.
        """
        plan = {"blocks": {"min": changes.pop("blocks", 1)}, "sentinel": "off", **changes.pop("plan", {})}
        args = {"max_model_len": 4096, "max_num_seqs": 64, "start_seconds": "0.5", **changes.pop("args", {})}
        engine = {
            "name": "sim",
            "kind": "simulated",
            "image": self.info.images["engines"],
            "profile": changes.pop("profile", "instant"),
            "args": args,
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        }
        spec = {
            "model": {"name": "toy/model"},
            "engines": [engine],
            "configs": {"grid": {"max_num_batched_tokens": changes.pop("budgets", [2048])}},
            "workload": {
                "promptTokens": [64],
                "outputTokens": [8],
                "requestRate": changes.pop("rates", [6]),
                "window": {"duration": changes.pop("window", "3s")},
                "leadIn": "1s",
                "warmup": {"max": changes.pop("warmup", "1s")},
            },
            "slo": {"ttft": "500ms", "tpot": "100ms"},
            "plan": plan,
            "runner": {"image": self.info.images["runner"]},
            "results": {
                "uri": self.uri,
                "endpoint": self.endpoint,
                "region": self.info.s3.region,
                "credentialsSecretRef": {"name": "bench-s3"},
            },
            **changes,
        }
        meta = {"name": name, "namespace": self.namespace}
        return {"apiVersion": "/".join(GROUP), "kind": "BenchmarkSweep", "metadata": meta, "spec": spec}

    def apply(self, body: Body) -> Body:
        made: Body = self.custom.create_namespaced_custom_object(*GROUP, self.namespace, PLURAL, body)
        return made

    def patch(self, spec: Body, name: str = "t") -> None:
        self.custom.patch_namespaced_custom_object(*GROUP, self.namespace, PLURAL, name, {"spec": spec})

    def get(self, name: str = "t") -> Body:
        body: Body = self.custom.get_namespaced_custom_object(*GROUP, self.namespace, PLURAL, name)
        return body

    @property
    def custom(self) -> Any:
        return client.CustomObjectsApi(self.api)

    @property
    def core(self) -> Any:
        return client.CoreV1Api(self.api)

    def wait(self, reached: Callable[[Body], bool], timeout: int = 120, name: str = "t") -> Body:
        """Wait until the sweep's status satisfies ``reached``; fails with the last status."""
        status: Body = {}
        watcher: Any = watch.Watch  # the client's untyped part
        stream = watcher().stream(
            self.custom.list_namespaced_custom_object,
            *GROUP,
            self.namespace,
            PLURAL,
            field_selector=f"metadata.name={name}",
            timeout_seconds=timeout,
        )
        for event in stream:
            status = event["object"].get("status", {})
            phase = status.get("phase", "")
            if phase and (not self.seen or self.seen[-1] != phase):
                self.seen.append(phase)
            if reached(status):
                return status
        pytest.fail(f"not reached within {timeout} s: {json.dumps(status, indent=1)}\n{self.describe()}")

    def finished(self, timeout: int = 150, name: str = "t") -> Body:
        """Wait for the end of the sweep."""
        ends = {"Succeeded", "PartiallyFailed", "Failed", "Cancelled"}
        return self.wait(lambda status: status.get("phase") in ends, timeout, name)

    def succeeded(self, timeout: int = 180) -> Body:
        """Wait for the end, which must be Succeeded."""
        status = self.finished(timeout)
        assert status["phase"] == "Succeeded", f"{json.dumps(status, indent=1)}\n{self.describe()}"
        return status

    def step(self, wanted: str, timeout: int = 90) -> Body:
        """Wait until a trial is in this step, such as ``measuring``."""
        return self.wait(lambda s: any(c.get("step") == wanted for c in s.get("current", [])), timeout)

    def pods(self, role: str) -> list[Any]:
        selector = f"goodput.dev/role={role}"
        pods: list[Any] = self.core.list_namespaced_pod(self.namespace, label_selector=selector).items
        return pods

    def children(self) -> list[str]:
        """Everything in the namespace that carries the product's label."""
        apps: Any = client.AppsV1Api(self.api)
        batch: Any = client.BatchV1Api(self.api)
        listers = (
            self.core.list_namespaced_pod,
            self.core.list_namespaced_config_map,
            apps.list_namespaced_deployment,
            apps.list_namespaced_replica_set,
            batch.list_namespaced_job,
        )
        return [
            f"{lister.__name__.removeprefix('list_namespaced_')}/{item.metadata.name}"
            for lister in listers
            for item in lister(self.namespace, label_selector="goodput.dev/sweep").items
        ]

    def gone(self, timeout: int = 90) -> None:
        """Wait until no child of any sweep is left."""
        deadline = time.monotonic() + timeout
        while left := self.children():
            if time.monotonic() > deadline:
                pytest.fail(f"children left: {left}")
            time.sleep(0.5)  # five kinds of objects: no single event says that all are gone

    def reasons(self) -> list[str]:
        """Reasons of the events on the sweep."""
        events = self.core.list_namespaced_event(self.namespace).items
        return [event.reason for event in events if event.involved_object.kind == "BenchmarkSweep"]

    def stored(self) -> list[str]:
        """Keys below this test's folder."""
        return sorted(entry["path"] for batch in self.store.list(prefix=self.namespace) for entry in batch)

    def results(self) -> list[str]:
        return [key for key in self.stored() if key.endswith("/_RESULT.json")]

    def commits(self) -> list[Body]:
        """Every attempt that was committed, valid or void, but for ScheduleLag.

        The whole cluster shares the cores of this machine: a busy moment voids a cell, rightly, and another attempt
        follows. No test is about that.
        """
        found = [json.loads(self.read(key)) for key in self.stored() if key.endswith("/_COMMIT.json")]
        return [commit for commit in found if commit["reason"] != "ScheduleLag"]

    def read(self, key: str) -> bytes:
        return bytes(self.store.get(key).bytes())

    def table(self, name: str) -> list[Body]:
        """Rows of tables/<name>.parquet."""
        key = next(key for key in self.stored() if key.endswith(f"/tables/{name}.parquet"))
        rows: list[Body] = pq.read_table(io.BytesIO(self.read(key))).to_pylist()
        return rows

    def describe(self) -> str:
        """What a person would look at."""
        lines = [f"{p.metadata.name} {p.status.phase}" for p in self.core.list_namespaced_pod(self.namespace).items]
        log = subprocess.run(
            [
                self.info.kubectl,
                "--kubeconfig",
                self.info.kubeconfig,
                "-n",
                SYSTEM,
                "logs",
                "deploy/goodput",
                "--tail=40",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        return "\n".join([*lines, "operator log:", log.stdout, log.stderr])


@pytest.fixture(scope="session")
def operator(cluster: ClusterInfo) -> None:
    """The chart, installed by helm with our images."""
    repository, _, tag = cluster.images["operator"].rpartition(":")
    helm = [cluster.helm, "--kubeconfig", cluster.kubeconfig, "-n", SYSTEM]
    values = [
        f"image.repository={repository}",
        f"image.tag={tag}",
        f"runner.image={cluster.images['runner']}",
        f"analysis.image={cluster.images['analysis']}",
    ]
    subprocess.run(
        [
            *helm,
            "upgrade",
            "--install",
            "goodput",
            str(ROOT / "charts/goodput"),
            "--create-namespace",
            "--wait",
            "--timeout",
            "120s",
            *(part for value in values for part in ("--set", value)),
        ],
        check=True,
    )
    _restart(cluster)  # the tag stays, the image may be another


def _restart(cluster: ClusterInfo) -> None:
    kubectl = [cluster.kubectl, "--kubeconfig", cluster.kubeconfig, "-n", SYSTEM, "rollout"]
    subprocess.run([*kubectl, "restart", "deploy/goodput"], check=True)
    subprocess.run([*kubectl, "status", "deploy/goodput", "--timeout=120s"], check=True)


@pytest.fixture
def bench(cluster: ClusterInfo, kube_api: ApiClient, namespace: str, s3: S3Store, operator: None) -> Bench:
    """A fresh namespace that enforces restricted Pod Security, with the store's credentials in a Secret."""
    server = cluster.s3
    client.CoreV1Api(kube_api).create_namespaced_secret(
        namespace,
        client.V1Secret(
            metadata=client.V1ObjectMeta(name="bench-s3"),
            string_data={"AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key},
        ),
    )
    return Bench(cluster, kube_api, namespace, s3, server.endpoint_pods)


class Faults:
    """Ways to break things on the node."""

    kill = staticmethod(node.kill)

    def rested_operator(self, bench: Bench) -> None:
        """An operator pod that was not killed yet: the kubelet waits 10, 20, 40 s before it starts one again."""
        pods: list[Any] = bench.core.list_namespaced_pod(SYSTEM).items
        if any(one.restart_count for pod in pods for one in pod.status.container_statuses or ()):
            _restart(bench.info)

    @contextmanager
    def gate(self, bench: Bench) -> Iterator[node.Gate]:
        """Put a gate between the pods and the S3 server."""
        with node.gate(bench.info.s3.endpoint_host, layout.from_environment().host_address) as gate:
            bench.endpoint = gate.endpoint
            yield gate


@pytest.fixture
def faults() -> Faults:
    return Faults()
