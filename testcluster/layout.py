"""Where everything lies: folders, addresses and names of one test cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testcluster.errors import ClusterError

REPOSITORY = Path(__file__).resolve().parent.parent
MAX_INDEX = 9


@dataclass(frozen=True)
class Layout:
    """Folders and addresses of one cluster. All of the cluster lives in a network namespace of its own.

    ``index`` (0 to 9) tells apart clusters that run beside each other on one machine.
    """

    cache: Path
    state: Path
    index: int = 0

    @property
    def name(self) -> str:
        """Name of the network namespace and of the root control group."""
        return f"goodput{self.index}"

    @property
    def bridge(self) -> str:
        """Name of the pods' bridge, inside the network namespace."""
        return "pods0"

    @property
    def host_link(self) -> str:
        """Name of the host's end of the cable into the network namespace."""
        return f"gp{self.index}-host"

    @property
    def node_link(self) -> str:
        """Name of the namespace's end of that cable."""
        return f"gp{self.index}-node"

    @property
    def host_address(self) -> str:
        """The host, as the cluster sees it."""
        return f"10.212.{self.index}.1"

    @property
    def node_address(self) -> str:
        """The node, as the host and the pods see it; the API server and the S3 server listen here."""
        return f"10.212.{self.index}.2"

    @property
    def pod_network(self) -> str:
        """Network of the pods, prefix of 16 bits."""
        return f"10.{220 + self.index}.0.0/16"

    @property
    def bridge_address(self) -> str:
        """Gateway of the pods."""
        return f"10.{220 + self.index}.0.1"

    @property
    def service_network(self) -> str:
        """Network of the Services, prefix of 16 bits."""
        return f"10.{240 + self.index}.0.0/16"

    @property
    def api_service_address(self) -> str:
        """Address of the Service ``kubernetes``."""
        return f"10.{240 + self.index}.0.1"

    @property
    def api_url(self) -> str:
        """Address of the API server."""
        return f"https://{self.node_address}:6443"

    @property
    def s3_url(self) -> str:
        """Address of the S3 server, the same for the host and for pods."""
        return f"http://{self.node_address}:9000"

    @property
    def node_name(self) -> str:
        """Name of the one node."""
        return "node-1"

    @property
    def run(self) -> Path:
        """Sockets, pid files, and what lives only as long as the cluster."""
        return self.state / "run"

    @property
    def pki(self) -> Path:
        """Keys and certificates."""
        return self.state / "pki"

    @property
    def log(self) -> Path:
        """One log for each program."""
        return self.state / "log"

    @property
    def containerd_root(self) -> Path:
        """The image store: kept between runs."""
        return self.state / "containerd"

    @property
    def containerd_socket(self) -> Path:
        """Where containerd listens."""
        return self.run / "containerd.sock"

    @property
    def cluster_json(self) -> Path:
        """What tests read; there only while the cluster is up."""
        return self.state / "cluster.json"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.state / "admin.kubeconfig"

    @property
    def netns(self) -> Path:
        """The network namespace as a file."""
        return Path("/run/netns") / self.name


def from_environment(env: Mapping[str, str] | None = None) -> Layout:
    """Layout from GOODPUT_CACHE, GOODPUT_CLUSTER_DIR and GOODPUT_CLUSTER_INDEX."""
    env = os.environ if env is None else env
    text = env.get("GOODPUT_CLUSTER_INDEX") or "0"
    if not text.isdecimal() or int(text) > MAX_INDEX:
        raise ClusterError(f"GOODPUT_CLUSTER_INDEX={text}: give a number from 0 to {MAX_INDEX}")
    index = int(text)
    home = Path(env.get("HOME") or Path.home())
    cache = Path(env.get("GOODPUT_CACHE") or home / ".cache/goodput").absolute()
    default = cache / ("cluster" if index == 0 else f"cluster{index}")
    return Layout(cache=cache, state=Path(env.get("GOODPUT_CLUSTER_DIR") or default).absolute(), index=index)
