"""How quickly the operator acts, and how small it stays: times of the API server's own events, on the test cluster.

Run: python bench/operator_times.py, after `make image` and with the chart installed (`make cluster-demo` does both). It
runs one sweep of short trials in a namespace of its own and prints

* server ready → runner created, and runner done → next server created, without the time that the old server's pod
  takes to end (limit of each: 1 s at p99); that time, and the whole gap, beside it;
* the operator's resident memory meanwhile (limit: 100 MiB).

A watch sees an object in the moment in which the API server has it, so what is measured is the operator and the
watch, without the start of pods.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes import client, watch
from kubernetes.config import load_kube_config

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the test cluster's tools are part of the repository

from testcluster import info, layout  # after the path is set
from testcluster.info import ClusterInfo

GROUP = ("goodput.dev", "v1alpha1")
PLURAL = "benchmarksweeps"
LIMIT_SECONDS = 1.0
LIMIT_MIB = 100.0
ENDS = {"Succeeded", "PartiallyFailed", "Failed", "Cancelled"}
ROLE = "goodput.dev/role"
TRIAL = "goodput.dev/trial"
Body = dict[str, Any]


class Watcher:
    """First time that something was seen of each trial, by step."""

    def __init__(self, api: Any, namespace: str) -> None:
        self.seen: dict[str, dict[str, float]] = {}  # step → trial → monotonic seconds
        core, batch, apps = client.CoreV1Api(api), client.BatchV1Api(api), client.AppsV1Api(api)
        for lister, read in (
            (core.list_namespaced_pod, self._pod),
            (batch.list_namespaced_job, self._lifetime("runner")),
            (apps.list_namespaced_deployment, self._lifetime("server")),
        ):
            threading.Thread(target=self._run, args=(lister, namespace, read), daemon=True).start()

    def between(self, first: str, second: str) -> list[float]:
        """Seconds from one step to another of the same trial."""
        begun, ended = self.seen.get(first, {}), self.seen.get(second, {})
        return [ended[trial] - begun[trial] for trial in begun if trial in ended]

    def gaps(self) -> list[float]:
        """Seconds from a runner's end to the next server, in the order in which they were seen."""
        done = sorted(self.seen.get("runner done", {}).values())
        created = sorted(self.seen.get("server created", {}).values())[1:]
        return [next_one - end for end, next_one in zip(done, created, strict=False)]

    def ends(self) -> list[float]:
        """Seconds that the pods of the servers before those took to end once their Deployment was deleted."""
        ended = self.between("server deleted", "server gone")
        return ended[: len(self.gaps())]

    def _run(self, lister: Any, namespace: str, read: Any) -> None:
        watcher: Any = watch.Watch  # the client's untyped part
        for event in watcher().stream(lister, namespace, label_selector=TRIAL):
            read(event["object"], event["type"] == "DELETED", time.monotonic())

    def _note(self, step: str, labels: Body, now: float) -> None:
        self.seen.setdefault(step, {}).setdefault(labels[TRIAL], now)

    def _lifetime(self, role: str) -> Any:
        def read(found: Any, deleted: bool, now: float) -> None:
            if found.metadata.labels.get(ROLE) == role:
                self._note(f"{role} {'deleted' if deleted else 'created'}", found.metadata.labels, now)

        return read

    def _pod(self, pod: Any, deleted: bool, now: float) -> None:
        labels = pod.metadata.labels
        if labels[ROLE] == "server" and deleted:
            self._note("server gone", labels, now)
        elif labels[ROLE] == "server":
            conditions = {one.type: one.status for one in pod.status.conditions or ()}
            if conditions.get("Ready") == "True":
                self._note("server ready", labels, now)
        elif any(one.state.terminated for one in pod.status.container_statuses or ()):
            self._note("runner done", labels, now)


def main() -> None:
    """Run the sweep and print the times."""
    cluster = info.read(layout.from_environment().cluster_json)
    configuration = client.Configuration()
    load: Any = load_kube_config  # the client's untyped part
    load(config_file=cluster.kubeconfig, client_configuration=configuration)
    with client.ApiClient(configuration) as api, namespace_for(api, cluster) as namespace:
        watcher = Watcher(api, namespace)
        peak = run(api, namespace, sweep(cluster, namespace))
    limit = f" (limit {LIMIT_SECONDS:.0f} s)"
    print_times("server ready → runner created", watcher.between("server ready", "runner created"), limit)
    whole, ends = watcher.gaps(), watcher.ends()
    own = [gap - end for gap, end in zip(whole, ends, strict=True)]
    print_times("runner done → next server created, without the old pod's end", own, limit)
    print_times("the old server's pod, from the deletion to its end", ends)
    print_times("the whole gap", whole)
    print(f"resident memory with one active sweep: {peak:.0f} MiB (limit {LIMIT_MIB:.0f})")


def print_times(name: str, seconds: list[float], note: str = "") -> None:
    """Median and p99 of one step."""
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    median = statistics.median(ordered)
    print(f"{name}: p50 {median * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, n {len(ordered)}{note}")


def run(api: Any, namespace: str, body: Body) -> float:
    """Apply the sweep and wait for its end. Peak resident memory of the operator on this machine, in MiB."""
    custom = client.CustomObjectsApi(api)
    custom.create_namespaced_custom_object(*GROUP, namespace, PLURAL, body)
    peak = 0.0
    while True:
        found: Any = custom.get_namespaced_custom_object(*GROUP, namespace, PLURAL, body["metadata"]["name"])
        peak = max(peak, resident_mib())
        if found.get("status", {}).get("phase") in ENDS:
            return peak
        time.sleep(1.0)


def resident_mib() -> float:
    """Resident memory of the operator's process, 0 where it does not run on this machine."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if b"goodput-operator" in (status.parent / "cmdline").read_bytes():
                lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
                return int(lines["VmRSS"].split()[0]) / 1024
        except (OSError, KeyError):
            continue
    return 0.0


def sweep(cluster: ClusterInfo, namespace: str) -> Body:
    """Ten short trials on the simulated engine."""
    spec = {
        "model": {"name": "toy/model"},
        "engines": [
            {
                "name": "sim",
                "kind": "simulated",
                "image": cluster.images["engines"],
                "profile": "instant",
                "args": {"max_model_len": 4096, "max_num_seqs": 64},
                "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
            }
        ],
        "configs": {"grid": {"max_num_batched_tokens": [256, 512, 1024, 2048, 4096]}},
        "workload": {
            "promptTokens": [64],
            "outputTokens": [8],
            "requestRate": [4],
            "window": {"duration": "1s"},
            "leadIn": "0s",
            "warmup": {"max": "0s"},
        },
        "slo": {"ttft": "500ms"},
        "plan": {"blocks": {"min": 2}, "sentinel": "off"},
        "runner": {"image": cluster.images["runner"], "resources": {"requests": {"cpu": "100m"}}},
        "results": {
            "uri": f"s3://{cluster.s3.bucket}/{namespace}",
            "endpoint": cluster.s3.endpoint_pods,
            "region": cluster.s3.region,
            "credentialsSecretRef": {"name": "bench-s3"},
        },
    }
    meta = {"name": "times", "namespace": namespace}
    return {"apiVersion": "/".join(GROUP), "kind": "BenchmarkSweep", "metadata": meta, "spec": spec}


@contextmanager
def namespace_for(api: Any, cluster: ClusterInfo) -> Iterator[str]:
    """A namespace that enforces restricted Pod Security, with the store's credentials; deleted at the end."""
    core: Any = client.CoreV1Api(api)
    name = f"bench-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    core.create_namespace({"metadata": {"name": name, "labels": labels}})
    data = {"AWS_ACCESS_KEY_ID": cluster.s3.access_key, "AWS_SECRET_ACCESS_KEY": cluster.s3.secret_key}
    core.create_namespaced_secret(name, {"metadata": {"name": "bench-s3"}, "stringData": data})
    try:
        yield name
    finally:
        core.delete_namespace(name)


if __name__ == "__main__":
    main()
