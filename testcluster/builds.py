"""Building the pinned Go programs, each kept under a name that holds the hash of its inputs."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from testcluster.errors import MachineError
from testcluster.layout import REPOSITORY, Layout
from testcluster.shell import run, step
from testcluster.toolchain import find_go

SOURCES = REPOSITORY / "testcluster"
KUBE_PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "kubectl",
)


@dataclass(frozen=True)
class Program:
    """One program: the folder of its go.mod and go.sum, the package to build, the linker's extra flags."""

    name: str
    folder: Path
    package: str
    linker: str = ""


def kubernetes_version(go_mod: str) -> str:
    """Version of k8s.io/kubernetes that a go.mod asks for, as ``v1.34.4``."""
    found = re.search(r"k8s\.io/kubernetes (v[0-9.]+)", go_mod)
    if found is None:
        raise MachineError("testcluster/kube/go.mod does not name k8s.io/kubernetes")
    return found.group(1)


def programs() -> list[Program]:
    """All programs, in the order in which they are built: the cluster runs without the last."""
    version = kubernetes_version((SOURCES / "kube/go.mod").read_text())
    major, minor, _ = version.removeprefix("v").split(".")
    stamp = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    # Without these the programs report v0.0.0-master and clients that check versions refuse them.
    linker = " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in stamp.items())
    return [
        Program("kube", SOURCES / "kube", ".", linker),
        Program("versitygw", SOURCES / "tools/versitygw", "github.com/versity/versitygw/cmd/versitygw"),
        Program("pause", SOURCES / "tools/pause", "."),
        Program("helm", SOURCES / "tools/helm", "helm.sh/helm/v4/cmd/helm"),
    ]


def input_hash(program: Program) -> str:
    """First 16 hex digits of the SHA-256 over Go files, go.mod, go.sum, package and flags."""
    digest = hashlib.sha256(f"{program.package}\0{program.linker}\0".encode())
    folder = program.folder
    for path in (*sorted(folder.glob("*.go")), folder / "go.mod", folder / "go.sum"):
        data = path.read_bytes() if path.exists() else b""
        digest.update(f"{path.name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()[:16]


def build(layout: Layout, *names: str) -> None:
    """Build those of the named programs that are not in the cache."""
    for program in programs():
        target = _target(layout, program)
        if program.name in names and not target.exists():
            with step(f"building {program.name} (once)"):
                _build(program, target, find_go(layout))


def locate(layout: Layout) -> dict[str, Path]:
    """Where each program lies once it is built, by name, the Kubernetes ones included."""
    paths = {program.name: _target(layout, program) for program in programs()}
    return paths | {name: paths["kube"].with_name(name) for name in KUBE_PROGRAMS}


def _target(layout: Layout, program: Program) -> Path:
    return layout.cache / "bin" / f"{program.name}-{input_hash(program)}" / program.name


def _build(program: Program, target: Path, go: str) -> None:
    """Build one program and move it to its place in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{program.name}.{os.getpid()}")
    flags = ["-trimpath", "-mod=readonly", "-buildvcs=false", "-ldflags", f"-s -w {program.linker}".strip()]
    env = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}
    run([go, "build", *flags, "-o", str(partial), program.package], cwd=program.folder, env=env)
    for name in KUBE_PROGRAMS if program.name == "kube" else ():
        target.with_name(name).unlink(missing_ok=True)
        target.with_name(name).symlink_to("kube")
    partial.rename(target)
