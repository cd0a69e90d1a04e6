"""Picking one image out of a folder in the OCI image layout, without the parts that the receiver has."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from testcluster.errors import ClusterError

NAME_ANNOTATION = "org.opencontainers.image.ref.name"


def select_manifest(index: dict[str, Any], name: str) -> dict[str, Any]:
    """The descriptor of image ``name`` in a layout's index; raises ClusterError when it is not there."""
    for descriptor in index["manifests"]:
        if descriptor.get("annotations", {}).get(NAME_ANNOTATION) == name:
            found: dict[str, Any] = descriptor
            return found
    raise ClusterError(f"{name} is not in the image layout")


def pack(layout: Path, name: str, present: AbstractSet[str], target: Path) -> int:
    """Write a tar file in the OCI layout with image ``name``, less the blobs that ``present`` names.

    The manifest and the configuration always go along: they are small, and the receiver starts from them.
    Returns the size of the layers written, in bytes.
    """
    descriptor = select_manifest(json.loads((layout / "index.json").read_text()), name)
    manifest = json.loads(_blob(layout, descriptor["digest"]).read_text())
    layers = [layer["digest"] for layer in manifest["layers"] if layer["digest"] not in present]
    index = json.dumps({"schemaVersion": 2, "manifests": [descriptor]}).encode()
    size = 0
    with tarfile.open(target, "w") as archive:
        for file, data in (("oci-layout", (layout / "oci-layout").read_bytes()), ("index.json", index)):
            entry = tarfile.TarInfo(file)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for digest in (*layers, manifest["config"]["digest"], descriptor["digest"]):
            path = _blob(layout, digest)
            archive.add(path, str(path.relative_to(layout)))
            size += path.stat().st_size if digest in layers else 0
    return size


def _blob(layout: Path, digest: str) -> Path:
    algorithm, _, value = digest.partition(":")
    return layout / "blobs" / algorithm / value
