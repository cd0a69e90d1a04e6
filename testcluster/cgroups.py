"""The control group under which all pods live: whatever is in it is the cluster's, and is ended with it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from testcluster.errors import ClusterError

ROOT = Path("/sys/fs/cgroup")
GONE_S = 10.0


@dataclass(frozen=True)
class ControlGroup:
    """Group ``/NAME`` of every hierarchy, version 1 or 2."""

    name: str
    root: Path = ROOT

    def hierarchies(self) -> list[Path]:
        """Mount points of all hierarchies: one under version 2, one for each controller under version 1."""
        if (self.root / "cgroup.controllers").exists():
            return [self.root]
        found = [path for path in sorted(self.root.iterdir()) if (path / "cgroup.procs").exists()]
        return [path for path in found if not path.is_symlink()]

    def make(self) -> None:
        """Make the group; under version 2 its parent hands down all controllers."""
        for hierarchy in self.hierarchies():
            if hierarchy.name == "unified":
                continue  # a version 2 hierarchy beside those of version 1 holds no controllers
            group = hierarchy / self.name
            group.mkdir(exist_ok=True)
            if (hierarchy / "cgroup.subtree_control").exists():
                _hand_down(hierarchy)
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (hierarchy / name).exists():
                    (group / name).write_text((hierarchy / name).read_text())

    def groups(self) -> list[Path]:
        """All groups of all hierarchies, the innermost first."""
        tops = [hierarchy / self.name for hierarchy in self.hierarchies()]
        found = [Path(folder) for top in tops if top.exists() for folder, _, _ in os.walk(top)]
        return sorted(found, key=lambda path: len(path.parts), reverse=True)

    def members(self) -> set[int]:
        """Process ids in the group and below."""
        found: set[int] = set()
        for group in self.groups():
            with contextlib.suppress(OSError):
                found.update(int(line) for line in (group / "cgroup.procs").read_text().split())
        return found

    def remove(self) -> None:
        """End every member and remove the group; raises ClusterError when a member cannot be ended."""
        deadline = time.monotonic() + GONE_S
        while members := self.members():
            if time.monotonic() > deadline:
                raise ClusterError(f"processes {sorted(members)} of control group {self.name} do not end")
            for pid in members:
                self._kill(pid)
            time.sleep(0.02)
        for group in self.groups():
            with contextlib.suppress(OSError):
                group.rmdir()

    def _kill(self, pid: int) -> None:
        """End a process that is a member at the moment when its number is bound to a pidfd."""
        with contextlib.suppress(OSError):
            fd = os.pidfd_open(pid)
            try:
                if f":/{self.name}/" in (Path("/proc") / str(pid) / "cgroup").read_text():
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
            finally:
                os.close(fd)


def _hand_down(hierarchy: Path) -> None:
    """Let the groups of a version 2 hierarchy have its controllers."""
    for controller in (hierarchy / "cgroup.controllers").read_text().split():
        with contextlib.suppress(OSError):  # one that cannot be handed down is none that the kubelet needs
            (hierarchy / "cgroup.subtree_control").write_text(f"+{controller}")
