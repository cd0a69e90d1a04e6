"""Starting, killing and removing a cluster. It is one of its own, beside the cluster that the other tests use."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from testcluster import layout, network, processes, stop
from testcluster.layout import Layout

pytestmark = [pytest.mark.cluster, pytest.mark.lifecycle, pytest.mark.timeout(600)]
INDEX = "9"
POD_S = 90.0


@dataclass(frozen=True)
class Machine:
    """The command line, aimed at a cluster in a folder of the test's."""

    folder: Path

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "GOODPUT_CLUSTER_DIR": str(self.folder), "GOODPUT_CLUSTER_INDEX": INDEX}

    @property
    def layout(self) -> Layout:
        return layout.from_environment(self.env)

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "testcluster", *arguments]
        return subprocess.run(argv, env=self.env, capture_output=True, text=True, check=False)

    def up(self) -> dict[str, Any]:
        done = self.call("up")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def down(self) -> None:
        done = self.call("down")
        assert done.returncode == 0, done.stderr

    def kubectl(self, cluster: dict[str, Any], *arguments: str, stdin: str = "") -> str:
        argv = [cluster["kubectl"], "--kubeconfig", cluster["kubeconfig"], *arguments]
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run_pod(self, cluster: dict[str, Any]) -> int:
        """Start a pod of the sandbox's own program; returns the id of its process once it is Ready."""
        config = (self.folder / "containerd.toml").read_text()
        image = re.search(r'sandbox_image = "(.*)"', config)
        assert image is not None
        container = {"name": "main", "image": image[1], "imagePullPolicy": "Never"}
        volume = {"name": "memory", "emptyDir": {"medium": "Memory"}}
        container["volumeMounts"] = [{"name": "memory", "mountPath": "/memory"}]
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "still"},
            "spec": {"containers": [container], "volumes": [volume]},
        }
        self.wait_for_account(cluster)
        self.kubectl(cluster, "create", "-f", "-", stdin=json.dumps(body))
        self.kubectl(cluster, "wait", "--for=condition=Ready", f"--timeout={POD_S:.0f}s", "pod/still")
        ours = [who for who in processes.everyone() if who.argv[0] == "/pause" and in_group(who.pid, self.layout)]
        assert len(ours) == 2, ours  # the sandbox's and the container's
        return ours[0].pid

    def wait_for_account(self, cluster: dict[str, Any]) -> None:
        self.kubectl(cluster, "wait", "--for=create", "--timeout=30s", "serviceaccount/default")


def in_group(pid: int, place: Layout) -> bool:
    return f"/{place.name}/" in Path(f"/proc/{pid}/cgroup").read_text()


def traces(machine: Machine) -> set[str]:
    """Everything on the machine that a cluster may leave, less what other tests use meanwhile."""
    commands = (
        "ip -brief link",
        "ip -brief address",
        "ip route",
        "ip netns list",
        "nft list ruleset",
        "iptables-save",
        "iptables-legacy-save",
    )
    lines = [
        f"{command}: {line.strip()}"
        for command in commands
        for line in subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout.splitlines()
        if not line.startswith("#")
    ]
    place = machine.layout
    lines += [f"mount: {line.split()[1]}" for line in Path("/proc/mounts").read_text().splitlines()]
    for who in processes.everyone():
        if any(str(machine.folder) in part for part in who.argv[1:]) or in_group(who.pid, place):
            lines.append(f"process: {who.argv}")
    lines += [f"socket: {path}" for path in Path("/run/containerd/s").glob("*") if deaf(path)]
    lines += [f"group: {path}" for path in Path("/sys/fs/cgroup").glob(f"**/{place.name}")]
    lines += [f"setting: {name}={setting(name)}" for name in network.KUBELET_SYSCTLS]
    others = str(layout.from_environment().cache)  # the other cluster's folder, and the image builder's
    return {line for line in lines if others not in line}


def deaf(path: Path) -> bool:
    """Whether a socket is left that nobody listens on."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except FileNotFoundError:
            return False
    return False


def setting(name: str) -> str:
    return Path("/proc/sys", *name.split(".")).read_text().strip()


def kill(place: Layout, names: frozenset[str]) -> None:
    """SIGKILL the cluster's processes of these names, as a machine's memory killer or an impatient person does."""
    for who in processes.ours(names, place.state):
        os.kill(who.pid, signal.SIGKILL)
        assert processes.wait_gone(who.pid, 10.0)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "cluster")
    yield made
    made.down()


def test_down_leaves_nothing_behind_and_may_be_repeated(machine: Machine) -> None:
    before = traces(machine)
    machine.run_pod(machine.up())
    assert traces(machine) - before
    machine.down()
    assert traces(machine) - before == set()
    assert not (machine.folder / "etcd").exists()
    assert not (machine.folder / "cluster.json").exists()
    machine.down()
    assert traces(machine) - before == set()


def test_up_recovers_where_everything_was_killed(machine: Machine) -> None:
    before = traces(machine)
    cluster = machine.up()
    place = machine.layout
    orphan = machine.run_pod(cluster)
    kill(place, stop.ALL)
    assert processes.start_ticks(orphan) is not None  # pods outlive their runtime
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"]) as stranger:
        claim_number(place.run / "etcd.pid", stranger.pid)
        again = machine.up()
        assert stranger.poll() is None
        stranger.kill()
    assert processes.start_ticks(orphan) is None
    assert again["s3"]["access_key"] != cluster["s3"]["access_key"]
    assert machine.kubectl(again, "get", "pods", "--output=name") == ""  # nothing of the old cluster's state
    machine.run_pod(again)
    machine.down()
    assert traces(machine) - before == set()


@pytest.mark.parametrize("dead", ["containerd", "kube-apiserver kubelet", "containerd-shim-runc-v2 etcd"])
def test_down_leaves_nothing_of_a_cluster_that_is_half_dead(machine: Machine, dead: str) -> None:
    before = traces(machine)
    machine.run_pod(machine.up())
    kill(machine.layout, frozenset(dead.split()))
    machine.down()
    assert traces(machine) - before == set()


def test_a_second_up_changes_nothing_and_one_dead_program_is_noticed(machine: Machine) -> None:
    first = machine.up()
    started = {path.name: path.read_text() for path in machine.layout.run.glob("*.pid")}
    assert machine.up() == first
    assert {path.name: path.read_text() for path in machine.layout.run.glob("*.pid")} == started
    kill(machine.layout, frozenset({"kube-scheduler"}))
    assert machine.up()["s3"]["access_key"] != first["s3"]["access_key"]


def test_a_living_cluster_of_another_folder_is_left_alone(machine: Machine, tmp_path: Path) -> None:
    machine.up()
    other = Machine(tmp_path / "other")
    refused = other.call("up")
    assert refused.returncode == 1
    assert f"the cluster in {machine.folder} runs under index {INDEX}" in refused.stderr
    other.down()
    assert machine.call("info").returncode == 0
    assert "the cluster is up" in machine.call("up").stderr


def test_a_folder_with_other_things_is_refused_and_kept(machine: Machine) -> None:
    machine.folder.mkdir()
    (machine.folder / "letter.txt").write_text("dear")
    assert "not a test cluster's folder" in machine.call("up").stderr
    machine.down()
    assert (machine.folder / "letter.txt").read_text() == "dear"


def claim_number(path: Path, pid: int) -> None:
    """Make a pid file say that its process has this number, as when the kernel gave the number to somebody else."""
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "pid": pid}))
