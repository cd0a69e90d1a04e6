"""The main job on the test cluster, as a user does it: helm, kubectl apply, kubectl get -w, tables, kubectl delete.

Run by `make cluster-demo`, which brings the cluster up and builds the images first.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml
from obstore.store import S3Store

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the test cluster's tools are part of the repository, not of the distribution

from testcluster import info, layout  # noqa: E402  # after the path is set

SPEC = ROOT / "examples" / "cluster-quickstart.yaml"
NAMESPACE = "bench"
ENDS = ("Succeeded", "PartiallyFailed", "Failed", "Cancelled")


class Shell:
    """kubectl and helm of the cluster; every command is printed before it runs."""

    def __init__(self, cluster: info.ClusterInfo) -> None:
        self.cluster = cluster

    def run(self, program: str, *arguments: str, stdin: str | None = None, quiet: bool = False) -> str:
        """Run a command, show what it prints, return it."""
        print(f"\n$ {program} {' '.join(arguments)}", flush=True)
        path = self.cluster.kubectl if program == "kubectl" else self.cluster.helm
        command = [path, "--kubeconfig", self.cluster.kubeconfig, *arguments]
        done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, text=True, check=True)
        if not quiet:
            print(done.stdout, end="", flush=True)
        return done.stdout

    def watch(self, name: str) -> str:
        """`kubectl get bsw NAME -w` until the sweep has ended; returns its last line."""
        print(f"\n$ kubectl -n {NAMESPACE} get bsw {name} -w", flush=True)
        command = [self.cluster.kubectl, "--kubeconfig", self.cluster.kubeconfig, "-n", NAMESPACE]
        line = ""
        with subprocess.Popen([*command, "get", "bsw", name, "-w"], stdout=subprocess.PIPE, text=True) as watcher:
            before = ""
            for line in watcher.stdout or ():
                if line.split()[:-1] != before.split()[:-1]:  # all but the age
                    print(line, end="", flush=True)
                before = line
                if any(end in line.split() for end in ENDS):
                    watcher.terminate()
                    break
        return line


def main() -> None:
    """Run the demo; exits with 1 where something is left behind or missing."""
    cluster = info.read(layout.from_environment().cluster_json)
    shell = Shell(cluster)
    install(shell, cluster)
    name = yaml.safe_load(SPEC.read_text())["metadata"]["name"]
    shell.run("kubectl", "-n", NAMESPACE, "apply", "-f", str(SPEC.relative_to(ROOT)))
    last = shell.watch(name)
    status = json.loads(shell.run("kubectl", "-n", NAMESPACE, "get", "bsw", name, "-o", "json", quiet=True))["status"]
    print(json.dumps({key: status.get(key) for key in ("phase", "counts", "best", "resultsURI")}, indent=1))
    tables(cluster, status["resultsURI"])
    shell.run("kubectl", "-n", NAMESPACE, "delete", "bsw", name, "--wait")
    kinds = "pods,jobs,deployments,configmaps"
    waiting = ["wait", "--for=delete", kinds, "-l", "goodput.dev/sweep", "--timeout=120s"]
    shell.run("kubectl", "-n", NAMESPACE, *waiting)  # the garbage collector works in the background
    left = shell.run("kubectl", "-n", NAMESPACE, "get", kinds, "-l", "goodput.dev/sweep", "-o", "name")
    if left or "Succeeded" not in last:
        sys.exit(f"left behind: {left or 'nothing'}; last line: {last}")
    print("no child is left")


def install(shell: Shell, cluster: info.ClusterInfo) -> None:
    """The chart with our images, and a namespace that enforces restricted Pod Security."""
    repository, _, tag = cluster.images["operator"].rpartition(":")
    values = {
        "image.repository": repository,
        "image.tag": tag,
        "runner.image": cluster.images["runner"],
        "analysis.image": cluster.images["analysis"],
    }
    sets = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    chart = ["goodput", "charts/goodput", "-n", "goodput-system", "--create-namespace", "--wait", *sets]
    shell.run("helm", "upgrade", "--install", *chart, quiet=True)
    secret = {"AWS_ACCESS_KEY_ID": cluster.s3.access_key, "AWS_SECRET_ACCESS_KEY": cluster.s3.secret_key}
    objects = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "bench-s3", "namespace": NAMESPACE},
            "stringData": secret,
        },
    ]
    shell.run("kubectl", "apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, objects)))


def tables(cluster: info.ClusterInfo, uri: str) -> None:
    """Read the goodput table back from the S3 server."""
    server = cluster.s3
    store = S3Store(
        server.bucket,
        endpoint=server.endpoint_host,
        access_key_id=server.access_key,
        secret_access_key=server.secret_key,
        region=server.region,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )
    folder = uri.removeprefix(f"s3://{server.bucket}/").rstrip("/")
    found = sorted(entry["path"] for batch in store.list(prefix=folder) for entry in batch)
    print(f"\n{uri}: {len(found)} objects, among them")
    for path in found:
        if "/tables/" in path or path.endswith((".html", "best.yaml")):
            print(f"  {path.removeprefix(folder + '/')}")
    print(bytes(store.get(f"{folder}/best.yaml").bytes()).decode())


if __name__ == "__main__":
    main()
