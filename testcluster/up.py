"""``up`` and ``down``: the cluster on this machine, or one that somebody else runs."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from testcluster import builds, components, info, ownership, packages, processes, settings, start
from testcluster.components import Component
from testcluster.errors import ClusterError
from testcluster.info import ClusterInfo
from testcluster.layout import Layout
from testcluster.shell import say, step
from testcluster.stop import leftovers, stop_all

GPU_RESOURCE = "nvidia.com/gpu"
CALM_S = 60.0


def uses_external(env: Mapping[str, str]) -> bool:
    """Whether the environment names a cluster of somebody else's to use."""
    return env.get("GOODPUT_USE_CLUSTER") == "1"


def up(layout: Layout, fake_gpus: int | None = None, env: Mapping[str, str] | None = None) -> ClusterInfo:
    """Bring the cluster up, unless it is, and write ``cluster.json``.

    ``fake_gpus`` gives the node that many pieces of nvidia.com/gpu; None leaves the number as it is.
    """
    env = os.environ if env is None else env
    if uses_external(env):
        layout.state.mkdir(parents=True, exist_ok=True)
        found = info.external(layout, env, _helm(layout))
        found.write(layout.cluster_json)
        return found
    packages.install()
    builds.build(layout, "kube", "versitygw", "pause")
    paths = builds.locate(layout)
    with ownership.locked(layout):
        ownership.claim(layout)
        mark = fingerprint(layout, paths)
        if _runs(layout, mark):
            say("the cluster is up")
        else:
            with step("removing what an earlier run left"):
                stop_all(layout)
            _start(layout, paths, mark)
        if fake_gpus is not None:
            start.api(layout).set_capacity(layout.node_name, GPU_RESOURCE, fake_gpus)
    builds.build(layout, "helm")  # last: who waits for an API server need not wait for it
    return info.read(layout.cluster_json)


def down(layout: Layout, env: Mapping[str, str] | None = None) -> None:
    """Remove the cluster; raises ClusterError when anything of it is left."""
    if uses_external(os.environ if env is None else env):
        say("GOODPUT_USE_CLUSTER=1: the cluster is not ours, nothing is done")
        return
    with ownership.locked(layout):
        if not ownership.may_stop(layout):
            say("no cluster of this folder is there")
            return
        stop_all(layout)
        ownership.release(layout)
        left = leftovers(layout)
    if left:
        raise ClusterError("left behind: " + "; ".join(left))
    say("the cluster is gone")


def fingerprint(layout: Layout, paths: Mapping[str, Path]) -> str:
    """Hash of all that decides how the programs run; with another one they must be started anew."""
    programs = components.components(layout, paths, ("", ""))
    files = settings.config_files(layout, settings.pause_image(paths))
    bodies = sorted((str(path), body) for path, body in files.items())
    text = json.dumps([[item.argv for item in programs], bodies])
    return hashlib.sha256(text.encode()).hexdigest()


def _start(layout: Layout, paths: Mapping[str, Path], mark: str) -> None:
    """Start a fresh cluster with fresh S3 keys; one that fails is removed again, its logs kept."""
    keys = (secrets.token_hex(10), secrets.token_urlsafe(30))
    programs: list[Component] = components.components(layout, paths, keys)
    try:
        start.Starter(layout, paths, programs).start_all()
    except BaseException:
        stop_all(layout)
        raise
    (layout.run / "fingerprint").write_text(mark)
    info.local(layout, paths, keys).write(layout.cluster_json)


def _runs(layout: Layout, mark: str) -> bool:
    """Whether the cluster of this fingerprint runs whole; a busy machine gets CALM_S seconds to answer."""
    file = layout.run / "fingerprint"
    if not (layout.cluster_json.exists() and file.exists() and file.read_text() == mark):
        return False
    deadline = time.monotonic() + CALM_S
    while True:
        known = [processes.read_pid_file(path) for path in layout.run.glob("*.pid")]
        if not known or not all(who is not None and processes.is_alive(who) for who in known):
            return False
        if start.s3_answers(layout) and start.api(layout).node_ready(layout.node_name):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)


def _helm(layout: Layout) -> str:
    """Path of helm: the machine's own, else built."""
    found = shutil.which("helm")
    if found is None:
        builds.build(layout, "helm")
    return found or str(builds.locate(layout)["helm"])
