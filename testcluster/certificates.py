"""Keys and certificates of the control plane, made anew for every cluster with openssl."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from testcluster.layout import Layout
from testcluster.shell import run

DAYS = "365"
SUBJECTS = {
    "admin": "/O=system:masters/CN=admin",
    "kubelet-client": "/O=system:masters/CN=apiserver-kubelet",
    "controller-manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "proxy": "/CN=system:kube-proxy",
}


def make_all(layout: Layout) -> None:
    """Write the CA, keys and certificates of users and servers, the account key, the kubeconfigs."""
    pki = layout.pki
    pki.mkdir(mode=0o700, parents=True)
    _key(pki / "ca.key")
    _openssl(pki, f"req -x509 -new -key ca.key -out ca.crt -subj /CN=testcluster -days {DAYS}")
    dns = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
    addresses = ("127.0.0.1", layout.api_service_address, layout.node_address)
    _certificate(pki, "apiserver", "/CN=kube-apiserver", dns, addresses)
    node = f"/O=system:nodes/CN=system:node:{layout.node_name}"
    _certificate(pki, "node", node, (layout.node_name,), ("127.0.0.1", layout.node_address))
    for name, subject in SUBJECTS.items():
        _certificate(pki, name, subject, (name,), ())
    _key(pki / "service-account.key")
    _openssl(pki, "pkey -in service-account.key -pubout -out service-account.pub")
    for name in ("admin", "controller-manager", "scheduler", "proxy", "node"):
        path = layout.state / f"{name}.kubeconfig"
        path.write_text(json.dumps(kubeconfig(layout, name), indent=1))
        path.chmod(0o600)


def kubeconfig(layout: Layout, user: str) -> dict[str, object]:
    """A kubeconfig (JSON is YAML) that carries its certificates itself."""

    def data(name: str) -> str:
        return base64.b64encode((layout.pki / name).read_bytes()).decode()

    name = layout.name
    cluster = {"server": layout.api_url, "certificate-authority-data": data("ca.crt")}
    proof = {"client-certificate-data": data(f"{user}.crt"), "client-key-data": data(f"{user}.key")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": proof}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }


def _key(path: Path) -> None:
    """Write a P-256 key, readable by root alone."""
    _openssl(path.parent, f"genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out {path.name}")
    path.chmod(0o600)


def _certificate(pki: Path, name: str, subject: str, dns: tuple[str, ...], addresses: tuple[str, ...]) -> None:
    """Write NAME.key and NAME.crt, good for servers and clients."""
    _key(pki / f"{name}.key")
    names = ",".join([f"DNS:{item}" for item in dns] + [f"IP:{item}" for item in addresses])
    extensions = pki / f"{name}.ext"
    extensions.write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n")
    _openssl(pki, f"req -new -key {name}.key -subj {subject} -out {name}.csr")
    signer = "-CA ca.crt -CAkey ca.key -CAcreateserial"
    _openssl(pki, f"x509 -req -in {name}.csr {signer} -days {DAYS} -extfile {name}.ext -out {name}.crt")
    (pki / f"{name}.csr").unlink()
    extensions.unlink()


def _openssl(pki: Path, arguments: str) -> None:
    """Run openssl inside the folder of the keys; no argument holds a space."""
    run(["openssl", *arguments.split()], cwd=pki)
