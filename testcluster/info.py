"""``cluster.json``: what tests and make targets need to know of the cluster that is up."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from testcluster.errors import ClusterError
from testcluster.layout import Layout

VERSION = 1
TARGETS = ("operator", "runner", "analysis", "engines")


@dataclass(frozen=True)
class S3:
    """An S3 server with a bucket for tests; pods of a foreign cluster may need another endpoint."""

    endpoint_host: str
    endpoint_pods: str
    bucket: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"


@dataclass(frozen=True)
class ClusterInfo:
    """A cluster that is up. Paths are absolute; what a foreign cluster does not have is None."""

    external: bool
    kubeconfig: str
    kubectl: str
    helm: str
    prometheus: str | None
    promtool: str | None
    ctr: str | None
    containerd_socket: str | None
    versitygw: str | None
    s3: S3
    images: Mapping[str, str]
    node_address: str | None
    state: str

    @property
    def vllm_image(self) -> str:
        """Image of vLLM's CPU build, which is made on request only."""
        return self.images["engines"].replace("engines", "vllm-cpu")

    def write(self, path: Path) -> None:
        """Write the file in one step, readable by its owner alone: it holds keys."""
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        partial.touch(mode=0o600)
        partial.write_text(json.dumps({"v": VERSION, **asdict(self)}, indent=1) + "\n")
        partial.rename(path)


def read(path: Path) -> ClusterInfo:
    """Read the file; raises ClusterError when it is not there or has another version."""
    try:
        data: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise ClusterError(f"{path} does not exist: start the test cluster with `make cluster-up`") from error
    if data.pop("v", None) != VERSION:
        raise ClusterError(f"{path} was written by another version: run `make cluster-up` again")
    return ClusterInfo(**{**data, "s3": S3(**data["s3"])})


def image_names(env: Mapping[str, str]) -> dict[str, str]:
    """Name of each image by target: GOODPUT_IMAGE_PREFIX + target + ``:`` + GOODPUT_IMAGE_TAG."""
    prefix = env.get("GOODPUT_IMAGE_PREFIX") or "localhost/goodput-"
    return {target: f"{prefix}{target}:{env.get('GOODPUT_IMAGE_TAG') or 'dev'}" for target in TARGETS}


def local(layout: Layout, paths: Mapping[str, Path], keys: tuple[str, str]) -> ClusterInfo:
    """The cluster that ``up`` started on this machine."""
    return ClusterInfo(
        external=False,
        kubeconfig=str(layout.kubeconfig),
        kubectl=str(paths["kubectl"]),
        helm=str(paths["helm"]),
        prometheus=shutil.which("prometheus"),
        promtool=shutil.which("promtool"),
        ctr=shutil.which("ctr"),
        containerd_socket=str(layout.containerd_socket),
        versitygw=str(paths["versitygw"]),
        s3=S3(layout.s3_url, layout.s3_url, "bench", *keys),
        images=image_names({}),
        node_address=layout.node_address,
        state=str(layout.state),
    )


def external(layout: Layout, env: Mapping[str, str], helm: str) -> ClusterInfo:
    """A foreign cluster, as the environment describes it; raises ClusterError naming what is missing."""
    needed = (
        "KUBECONFIG",
        "GOODPUT_S3_ENDPOINT",
        "GOODPUT_S3_BUCKET",
        "GOODPUT_S3_ACCESS_KEY",
        "GOODPUT_S3_SECRET_KEY",
    )
    missing = [name for name in needed if not env.get(name)]
    kubectl = shutil.which("kubectl")
    missing += [] if kubectl else ["kubectl on PATH"]
    if missing or kubectl is None:
        raise ClusterError(f"GOODPUT_USE_CLUSTER=1 also needs {', '.join(missing)}")
    return ClusterInfo(
        external=True,
        kubeconfig=env["KUBECONFIG"],
        kubectl=kubectl,
        helm=helm,
        prometheus=shutil.which("prometheus"),
        promtool=shutil.which("promtool"),
        ctr=None,
        containerd_socket=None,
        versitygw=None,
        s3=S3(
            endpoint_host=env["GOODPUT_S3_ENDPOINT"],
            endpoint_pods=env.get("GOODPUT_S3_ENDPOINT_PODS") or env["GOODPUT_S3_ENDPOINT"],
            bucket=env["GOODPUT_S3_BUCKET"],
            access_key=env["GOODPUT_S3_ACCESS_KEY"],
            secret_key=env["GOODPUT_S3_SECRET_KEY"],
            region=env.get("GOODPUT_S3_REGION") or "us-east-1",
        ),
        images=image_names(env),
        node_address=None,
        state=str(layout.state),
    )
