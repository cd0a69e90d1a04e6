"""The programs of the cluster and their settings: pure text, started by ``start.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testcluster.layout import Layout


@dataclass(frozen=True)
class Component:
    """One program: its command line and what is added to its environment."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


def components(lay: Layout, paths: Mapping[str, Path], s3_keys: tuple[str, str]) -> list[Component]:
    """All programs in the order of their start; they are stopped in the opposite order."""
    return [
        Component("containerd", ("/usr/bin/containerd", "--config", f"{lay.state}/containerd.toml")),
        Component("versitygw", _versitygw(lay, paths["versitygw"]), _keys(s3_keys)),
        Component("etcd", _etcd(lay, paths["etcd"])),
        Component("kube-apiserver", _apiserver(lay, paths["kube-apiserver"])),
        Component("kube-controller-manager", _controller_manager(lay, paths["kube-controller-manager"])),
        Component("kube-scheduler", _scheduler(lay, paths["kube-scheduler"])),
        Component("kubelet", _kubelet(lay, paths["kubelet"])),
        Component("kube-proxy", _proxy(lay, paths["kube-proxy"])),
    ]


def _keys(s3_keys: tuple[str, str]) -> dict[str, str]:
    """The S3 server's keys go by environment: command lines are open to everybody on the machine."""
    return {"ROOT_ACCESS_KEY": s3_keys[0], "ROOT_SECRET_KEY": s3_keys[1]}


def _versitygw(lay: Layout, path: Path) -> tuple[str, ...]:
    return (str(path), "--port", f"{lay.node_address}:9000", "--quiet", "posix", f"{lay.state}/s3")


def _etcd(lay: Layout, path: Path) -> tuple[str, ...]:
    client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
    urls = ("--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer)
    return (str(path), "--data-dir", f"{lay.state}/etcd", *urls, "--unsafe-no-fsync", "--log-level", "warn")


def _apiserver(lay: Layout, path: Path) -> tuple[str, ...]:
    pki = lay.pki
    return (
        str(path),
        "--etcd-servers=http://127.0.0.1:2379",
        f"--service-cluster-ip-range={lay.service_network}",
        f"--advertise-address={lay.node_address}",
        "--secure-port=6443",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--kubelet-client-certificate={pki}/kubelet-client.crt",
        f"--kubelet-client-key={pki}/kubelet-client.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP",  # the node's name does not resolve
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki}/service-account.pub",
        f"--service-account-signing-key-file={pki}/service-account.key",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
    )


def _controller_manager(lay: Layout, path: Path) -> tuple[str, ...]:
    return (
        str(path),
        f"--kubeconfig={lay.state}/controller-manager.kubeconfig",
        f"--root-ca-file={lay.pki}/ca.crt",
        f"--service-account-private-key-file={lay.pki}/service-account.key",
        "--use-service-account-credentials",
        "--leader-elect=false",
    )


def _scheduler(lay: Layout, path: Path) -> tuple[str, ...]:
    return (str(path), f"--kubeconfig={lay.state}/scheduler.kubeconfig", "--leader-elect=false")


def _kubelet(lay: Layout, path: Path) -> tuple[str, ...]:
    return (
        str(path),
        f"--config={lay.state}/kubelet.json",
        f"--kubeconfig={lay.state}/node.kubeconfig",
        f"--root-dir={lay.state}/kubelet",
        f"--cert-dir={lay.pki}",
        f"--hostname-override={lay.node_name}",
        f"--node-ip={lay.node_address}",
    )


def _proxy(lay: Layout, path: Path) -> tuple[str, ...]:
    return (
        str(path),
        f"--kubeconfig={lay.state}/proxy.kubeconfig",
        "--proxy-mode=nftables",
        f"--cluster-cidr={lay.pod_network}",
        f"--hostname-override={lay.node_name}",
        "--conntrack-max-per-core=0",  # the limit is the machine's, not ours
    )
