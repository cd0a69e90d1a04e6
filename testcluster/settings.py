"""Settings files of containerd, the pods' network and the kubelet: pure text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from testcluster.layout import Layout


def pause_image(paths: Mapping[str, Path]) -> str:
    """Name of the image of the pods' sandboxes; its tag is the hash of the program in it."""
    return f"localhost/goodput-pause:{paths['pause'].parent.name.removeprefix('pause-')}"


def config_files(lay: Layout, sandbox_image: str) -> dict[Path, str]:
    """Text of each settings file by path."""
    return {
        lay.state / "containerd.toml": _containerd_toml(lay, sandbox_image),
        lay.state / "cni/10-pods.conflist": json.dumps(_cni(lay), indent=1),
        lay.state / "kubelet.json": json.dumps(_kubelet_config(lay), indent=1),
    }


def _containerd_toml(lay: Layout, sandbox_image: str) -> str:
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE runc fails (can't get final child's PID from pipe).
    # netns_mounts_under_state_dir: the pods' namespaces then lie in our folder and nowhere else.
    return f"""version = 2
root = "{lay.containerd_root}"
state = "{lay.run}/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{lay.containerd_socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{sandbox_image}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{lay.state}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "{lay.run}/runc"
"""


def _cni(lay: Layout) -> dict[str, object]:
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": lay.pod_network}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": f"{lay.run}/cni",
    }
    bridge = {"type": "bridge", "bridge": lay.bridge, "isGateway": True, "ipMasq": False, "hairpinMode": True}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [{**bridge, "ipam": ipam}]}


def _kubelet_config(lay: Layout) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{lay.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{lay.name}",
        "failSwapOn": False,
        "failCgroupV1": False,
        "makeIPTablesUtilChains": False,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{lay.pki}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{lay.pki}/node.crt",
        "tlsPrivateKeyFile": f"{lay.pki}/node.key",
        "podLogsDir": f"{lay.state}/pods-log",
        "volumePluginDir": f"{lay.state}/volume-plugins",
        "maxPods": 250,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
        "syncFrequency": "5s",
    }
