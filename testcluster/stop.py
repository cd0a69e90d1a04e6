"""Removing a cluster, whole or half dead, so that nothing is left of it but caches and logs."""

from __future__ import annotations

import contextlib
import shutil
import socket
from pathlib import Path

from testcluster import mounts, processes
from testcluster.cgroups import ControlGroup
from testcluster.containers import Containerd
from testcluster.errors import ClusterError
from testcluster.layout import Layout
from testcluster.network import Network, restore_sysctls
from testcluster.processes import Identity

KILLED = (
    "kubelet",
    "kube-proxy",
    "kube-scheduler",
    "kube-controller-manager",
    "kube-apiserver",
    "etcd",
    "versitygw",
)
SHIMS = ("containerd-shim-runc-v2", "runc")
ALL = frozenset({*KILLED, *SHIMS, "containerd"})
SHIM_SOCKETS = Path("/run/containerd/s")
STARTED = "sysctls.json"  # the first file of a start
# The image store makes the next start warm; the logs are for reading.
KEPT = ("containerd", "log", ".goodput-testcluster")


def stop_all(layout: Layout) -> None:
    """Remove what runs, is mounted or set for this cluster; harmless where nothing is left.

    All but containerd are killed outright: nothing of their state is kept. Raises ClusterError when something
    cannot be removed.
    """
    layout.cluster_json.unlink(missing_ok=True)
    _kill(layout, KILLED)
    ControlGroup(layout.name).remove()
    _kill(layout, SHIMS)
    if _alive(layout, ("containerd",)) and Containerd(layout).answers():
        Containerd(layout).forget_containers()
    for who in _alive(layout, ("containerd",)):
        processes.stop(who, grace_s=10.0)
    if (layout.run / STARTED).exists():
        _delete_dead_sockets(SHIM_SOCKETS, (layout.run / STARTED).stat().st_mtime)
    mounts.unmount_all(layout.state)
    Network(layout).down()
    restore_sysctls(layout.run / STARTED)
    _delete_files(layout)


def leftovers(layout: Layout) -> list[str]:
    """What of this cluster is still on the machine, in words; empty after a good ``stop_all``."""
    found = [f"process {who.pid} {who.argv[0]}" for who in processes.ours(ALL, layout.state)]
    found += [f"process {pid} in control group {layout.name}" for pid in ControlGroup(layout.name).members()]
    found += [f"control group {path}" for path in ControlGroup(layout.name).groups()]
    info = Path("/proc/self/mountinfo").read_text()
    found += [f"mount {point}" for folder in (layout.state, layout.netns) for point in mounts.below(folder, info)]
    link = Path("/sys/class/net") / layout.host_link
    files = (link, layout.netns, layout.cluster_json, layout.state / "etcd", layout.run)
    found += [f"file {path}" for path in files if path.exists()]
    return found


def _alive(layout: Layout, names: tuple[str, ...]) -> list[Identity]:
    """Running processes of these programs, from the pid files or by the folder in their arguments."""
    found = {who.pid: who for who in processes.ours(frozenset(names), layout.state)}
    for name in names:
        who = processes.read_pid_file(layout.run / f"{name}.pid")
        if who is not None and processes.is_alive(who):
            found[who.pid] = who
    return list(found.values())


def _kill(layout: Layout, names: tuple[str, ...]) -> None:
    """End these programs at once, and again if one started another meanwhile."""
    for _ in range(5):
        alive = _alive(layout, names)
        for who in alive:
            processes.stop(who, grace_s=0.0)
        if not alive:
            return
    raise ClusterError(f"processes {[who.pid for who in _alive(layout, names)]} do not end")


def _delete_dead_sockets(folder: Path, since: float) -> None:
    """Delete sockets made since then on which nobody listens any more.

    Shims' sockets lie outside our folder, under names that cannot be known once containerd has forgotten the
    container, and a shim that was killed leaves its own behind.
    """
    for path in folder.glob("*"):
        with contextlib.suppress(FileNotFoundError), socket.socket(socket.AF_UNIX) as probe:
            if path.is_socket() and path.stat().st_ctime >= since:
                try:
                    probe.connect(str(path))
                except ConnectionRefusedError:
                    path.unlink()


def _delete_files(layout: Layout) -> None:
    """Delete the cluster's folder but for what is kept; refuses while anything is mounted below."""
    left = mounts.below(layout.state, Path("/proc/self/mountinfo").read_text())
    if left:
        raise ClusterError(f"still mounted, so that nothing below is deleted: {left}")
    if layout.state.exists():
        for path in layout.state.iterdir():
            if path.name in KEPT:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
