"""Debian packages that the cluster and the images need."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from testcluster.errors import CommandError, MachineError
from testcluster.shell import run, say, step

PACKAGES = (
    "buildah",
    "ca-certificates",
    "conntrack",
    "containerd",
    "containernetworking-plugins",
    "debootstrap",
    "ethtool",
    "iproute2",
    "iptables",
    "nftables",
    "openssl",
    "prometheus",
    "python3-venv",
    "runc",
    "socat",
    "util-linux",
)
SERVICES = ("containerd", "prometheus", "prometheus-node-exporter")
POLICY = Path("/usr/sbin/policy-rc.d")


def missing(installed: str) -> list[str]:
    """Packages of ours that ``dpkg-query``'s lines ``status name`` do not show as installed."""
    present = {line.split()[1] for line in installed.splitlines() if line.startswith("installed ")}
    return [name for name in PACKAGES if name not in present]


def install() -> None:
    """Install what is missing, and leave no service of Debian's running that came with it."""
    if os.geteuid() != 0:
        raise MachineError("the test cluster needs root: it makes network namespaces, mounts and control groups")
    query = ["dpkg-query", "-W", "-f=${db:Status-Status} ${Package}\\n", *PACKAGES]
    wanted = missing(run(query, check=False))
    if not wanted:
        return
    command = ["apt-get", "install", "-qy", "--no-install-recommends", *wanted]
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    with step(f"installing {' '.join(wanted)}"), _no_services():
        try:
            run(command, env=env)
        except CommandError:
            say("the package lists are missing or old: updating them")
            run(["apt-get", "update", "-q"], env=env)
            run(command, env=env)


@contextlib.contextmanager
def _no_services() -> Iterator[None]:
    """Let no package start its service while it is installed, nor at the next boot."""
    own = not POLICY.exists()
    if own:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    before = {name for name in SERVICES if _unit(name).exists()}
    try:
        yield
    finally:
        if own:
            POLICY.unlink()
        if Path("/run/systemd/system").exists():
            fresh = [name for name in SERVICES if name not in before and _unit(name).exists()]
            if fresh:
                run(["systemctl", "disable", "--now", *fresh], check=False)


def _unit(name: str) -> Path:
    return Path(f"/lib/systemd/system/{name}.service")
