"""Starting the programs of a cluster and waiting until they serve."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testcluster import certificates, network, processes, settings
from testcluster.cgroups import ControlGroup
from testcluster.components import Component
from testcluster.containers import Containerd, program_image
from testcluster.errors import ComponentError
from testcluster.kube import Api
from testcluster.layout import Layout
from testcluster.network import Network
from testcluster.shell import step
from testcluster.stop import STARTED

READY_S = 120.0
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def api(layout: Layout) -> Api:
    """The API server as the administrator sees it."""
    return Api(layout.api_url, layout.pki / "ca.crt", layout.pki / "admin.crt", layout.pki / "admin.key")


def s3_answers(layout: Layout) -> bool:
    """Whether the S3 server accepts connections."""
    try:
        socket.create_connection((layout.node_address, 9000), timeout=1.0).close()
    except OSError:
        return False
    return True


@dataclass(frozen=True)
class Starter:
    """Starts a cluster on a machine where nothing of it is left."""

    layout: Layout
    paths: Mapping[str, Path]
    programs: list[Component]

    def start_all(self) -> None:
        """Bring everything up; returns when the node is Ready and the S3 server answers."""
        lay = self.layout
        for folder in (lay.run, lay.log, lay.state / "cni", lay.state / "s3" / "bench"):
            folder.mkdir(parents=True, exist_ok=True)
        network.save_sysctls(lay.run / STARTED)
        with step("network, control groups, certificates"):
            Network(lay).up()
            ControlGroup(lay.name).make()
            certificates.make_all(lay)
        image = settings.pause_image(self.paths)
        for path, text in settings.config_files(lay, image).items():
            path.write_text(text)
        with step("containerd"):
            self._containerd(image)
        with step("S3 server, etcd, API server"):
            self._start("versitygw", "etcd", "kube-apiserver")
            self._wait("kube-apiserver", api(lay).ready)
            self._wait("versitygw", lambda: s3_answers(lay))
        with step("controllers, scheduler, kubelet, proxy; node Ready"):
            self._start("kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
            self._wait("kubelet", lambda: api(lay).node_ready(lay.node_name))

    def _containerd(self, image: str) -> None:
        """Start containerd, drop records of a killed cluster's containers, and give it the sandbox image."""
        runtime = Containerd(self.layout)
        self._start("containerd")
        self._wait("containerd", runtime.answers)
        if runtime.forget_containers():
            who = processes.read_pid_file(self.layout.run / "containerd.pid")
            if who is not None:
                processes.stop(who, grace_s=10.0)
            self._start("containerd")  # so that its Kubernetes part does not remember them either
            self._wait("containerd", runtime.answers)
        if image not in runtime.images():
            archive = self.layout.run / "pause.tar"
            archive.write_bytes(program_image(self.paths["pause"], image))
            runtime.load(archive, image)
            archive.unlink()

    def _start(self, *names: str) -> None:
        """Start programs in the network namespace, each in its own session, with log and pid file."""
        for item in self.programs:
            if item.name in names:
                argv = list(item.argv)
                with (self.layout.log / f"{item.name}.log").open("ab") as log:
                    child = subprocess.Popen(
                        Network(self.layout).enter(argv),
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                        cwd=self.layout.state,
                        env={"PATH": SYSTEM_PATH, "HOME": str(self.layout.state), **item.env},
                    )
                processes.write_pid_file(self.layout.run / f"{item.name}.pid", child.pid, argv)
                child.returncode = 0  # it outlives this program: not ours to wait for

    def _wait(self, name: str, ready: Callable[[], bool]) -> None:
        """Wait for ``ready``; raises ComponentError when ``name`` has ended or READY_S have passed."""
        deadline = time.monotonic() + READY_S
        who = processes.read_pid_file(self.layout.run / f"{name}.pid")
        while not ready():
            gone = who is None or processes.start_ticks(who.pid) != who.start_ticks
            if gone or time.monotonic() > deadline:
                log = (self.layout.log / f"{name}.log").read_text(errors="replace")[-3000:]
                raise ComponentError(f"{name} {'has ended' if gone else 'is not ready'}; the end of its log:\n{log}")
            time.sleep(0.1)
