"""The cluster's network namespace: made before anything starts, and gone with everything in it at the end."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from testcluster.layout import Layout
from testcluster.shell import run

# Of the namespace alone. The second: answers between pods of one node must pass the Services' translation.
FORWARDING = ("net.ipv4.ip_forward=1", "net.bridge.bridge-nf-call-iptables=1")
# The kubelet sets these for the whole machine; they are put back when the cluster goes.
KUBELET_SYSCTLS = (
    "vm.overcommit_memory",
    "vm.panic_on_oom",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.keys.root_maxkeys",
    "kernel.keys.root_maxbytes",
)


@dataclass(frozen=True)
class Network:
    """Makes and removes the namespace, the cable to it and the routes through it."""

    layout: Layout

    def enter(self, argv: list[str]) -> list[str]:
        """Command line that runs ``argv`` inside the namespace, under the same process id."""
        return ["nsenter", f"--net={self.layout.netns}", *argv]

    def up(self) -> None:
        """Make namespace, cable, bridge and routes; the host gets a link and two routes, nothing else."""
        lay = self.layout
        _ip(f"netns add {lay.name}")
        _ip(f"link add {lay.host_link} type veth peer name {lay.node_link} netns {lay.name}")
        _ip(f"address add {lay.host_address}/30 dev {lay.host_link}")
        _ip(f"link set {lay.host_link} up")
        inside = f"-n {lay.name}"
        _ip(f"{inside} link set lo up")
        _ip(f"{inside} address add {lay.node_address}/30 dev {lay.node_link}")
        _ip(f"{inside} link set {lay.node_link} up")
        _ip(f"{inside} route add default via {lay.host_address}")
        _ip(f"{inside} link add {lay.bridge} type bridge")
        _ip(f"{inside} address add {lay.bridge_address}/16 dev {lay.bridge}")
        _ip(f"{inside} link set {lay.bridge} up")
        for target in (lay.pod_network, lay.service_network):
            _ip(f"route add {target} via {lay.node_address}")
        if shutil.which("modprobe"):
            run(["modprobe", "br_netfilter"], check=False)
        for setting in FORWARDING:
            run(self.enter(["sysctl", "-qw", setting]), check=False)

    def down(self) -> None:
        """Remove all of it; what is not there is no error."""
        _ip(f"link delete {self.layout.host_link}", check=False)
        _ip(f"netns delete {self.layout.name}", check=False)


def save_sysctls(path: Path) -> None:
    """Write the present values of the settings that the kubelet changes, unless an earlier run did."""
    if not path.exists():
        present = [name for name in KUBELET_SYSCTLS if _sysctl(name).exists()]
        values = {name: _sysctl(name).read_text().strip() for name in present}
        path.write_text(json.dumps(values))


def restore_sysctls(path: Path) -> None:
    """Put the saved values back and forget them."""
    if path.exists():
        for name, value in json.loads(path.read_text()).items():
            if _sysctl(name).read_text().strip() != value:
                _sysctl(name).write_text(value)
        path.unlink()


def _sysctl(name: str) -> Path:
    return Path("/proc/sys") / name.replace(".", "/")


def _ip(arguments: str, *, check: bool = True) -> None:
    run(["ip", *arguments.split()], check=check)
