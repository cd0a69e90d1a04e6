"""From a folder that ``buildah push dir:`` wrote to an archive for containerd, without the layers that it has."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Set as AbstractSet
from pathlib import Path

NAME_ANNOTATION = "org.opencontainers.image.ref.name"
LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'


def pack(folder: Path, name: str, present: AbstractSet[str], target: Path) -> int:
    """Write a tar file in the OCI layout with image ``name``, less the layers whose digests ``present`` holds.

    ``folder`` holds the manifest as manifest.json, and each blob under the hex digits of its digest. The manifest
    and the configuration always go along: they are small, and the receiver starts from them. Returns the size of
    the layers written, in bytes.
    """
    text = (folder / "manifest.json").read_bytes()
    manifest = json.loads(text)
    digest = hashlib.sha256(text).hexdigest()
    descriptor = {
        "mediaType": manifest["mediaType"],
        "digest": f"sha256:{digest}",
        "size": len(text),
        "annotations": {NAME_ANNOTATION: name},
    }
    index = json.dumps({"schemaVersion": 2, "manifests": [descriptor]}).encode()
    layers = [layer["digest"] for layer in manifest["layers"] if layer["digest"] not in present]
    size = 0
    with tarfile.open(target, "w") as archive:
        _add(archive, "oci-layout", LAYOUT)
        _add(archive, "index.json", index)
        for blob in (*layers, manifest["config"]["digest"]):
            value = blob.removeprefix("sha256:")
            archive.add(folder / value, f"blobs/sha256/{value}")
            size += (folder / value).stat().st_size if blob in layers else 0
        _add(archive, f"blobs/sha256/{digest}", text)
    return size


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))
