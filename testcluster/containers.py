"""Talking to the cluster's containerd through ``ctr``."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

from testcluster.layout import Layout
from testcluster.shell import run

CTR = "/usr/bin/ctr"
NAMESPACE = "k8s.io"


@dataclass(frozen=True)
class Containerd:
    """The images and containers of one cluster's containerd."""

    layout: Layout

    def ctr(self, *arguments: str, check: bool = True, stdin: bytes | None = None) -> str:
        """Run ``ctr`` in the kubelet's namespace."""
        socket = str(self.layout.containerd_socket)
        return run([CTR, "--address", socket, "--namespace", NAMESPACE, *arguments], check=check, stdin=stdin)

    def answers(self) -> bool:
        """Whether containerd serves its socket."""
        return self.layout.containerd_socket.exists() and "Server" in self.ctr("version", check=False)

    def images(self) -> dict[str, str]:
        """Digest of each image by name."""
        rows = [line.split() for line in self.ctr("images", "list").splitlines()[1:]]
        return {row[0]: row[2] for row in rows if len(row) > 2}

    def blobs(self) -> set[str]:
        """Digests of what the content store holds."""
        return set(self.ctr("content", "list", "--quiet").split())

    def load(self, archive: Path, name: str) -> None:
        """Import an archive (OCI or Docker) with image ``name`` and unpack it.

        An older image of that name is held until the end: the unpacked layers that both share belong to it alone
        until the new one is whole, and would be collected as garbage meanwhile.
        """
        older = f"{name}-older" if name in self.images() else None
        if older:
            self.ctr("images", "tag", "--force", name, older)
        try:
            self.ctr("images", "import", str(archive))
        finally:
            if older:
                self.ctr("images", "remove", older)

    def forget_containers(self) -> int:
        """Delete all containers' records (their processes must be gone); returns how many there were."""
        names = self.ctr("containers", "list", "--quiet", check=False).split()
        for name in names:
            self.ctr("tasks", "delete", "--force", name, check=False)
            self.ctr("containers", "delete", name, check=False)
        return len(names)


def program_image(program: Path, name: str) -> bytes:
    """A Docker archive of an image that holds one static program, run as a user that is not root."""
    layer = _tar({"pause": (program.read_bytes(), 0o755)})
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/pause"], "User": "65532:65532"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    text = json.dumps(config).encode()
    config_name = f"{hashlib.sha256(text).hexdigest()}.json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    return _tar({config_name: (text, 0o644), "layer.tar": (layer, 0o644), "manifest.json": (manifest, 0o644)})


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    """A tar file of (content, mode) by name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, (data, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
