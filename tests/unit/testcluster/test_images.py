"""When an image is built anew, and what of it goes into the cluster."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest
from testcluster import images, pushed
from testcluster.errors import ClusterError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (
        *images.FILES,
        "constraints/build.txt",
        "constraints/runner.txt",
        "runner/goodput/runner/main.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def test_the_hash_follows_sources_constraints_and_build_files(root: Path) -> None:
    seen = {images.input_hash("runner", root)}
    for name in ("Dockerfile", "constraints/runner.txt", "runner/goodput/runner/main.py", "pyproject.toml"):
        (root / name).write_text("changed")
        seen.add(images.input_hash("runner", root))
    (root / "analysis").mkdir()
    (root / "analysis/new.py").write_text("")
    seen.add(images.input_hash("runner", root))
    assert len(seen) == 6


def test_the_hash_does_not_follow_compiled_files_tests_or_other_images(root: Path) -> None:
    first = images.input_hash("runner", root)
    for name in (
        "runner/goodput/__pycache__/main.cpython-311.pyc",
        "tests/test_x.py",
        "constraints/engines.txt",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    assert images.input_hash("runner", root) == first


def test_a_missing_input_is_named(root: Path) -> None:
    (root / "constraints/runner.txt").unlink()
    with pytest.raises(ClusterError, match=r"constraints/runner\.txt is missing"):
        images.input_hash("runner", root)


def test_only_layers_that_the_receiver_lacks_are_packed(tmp_path: Path) -> None:
    folder = tmp_path / "pushed"
    folder.mkdir()

    def blob(data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        (folder / name).write_bytes(data)
        return f"sha256:{name}"

    known, fresh, config = blob(b"known"), blob(b"new!"), blob(b"{}")
    layers = [{"digest": known}, {"digest": fresh}]
    text = json.dumps({"mediaType": "m", "config": {"digest": config}, "layers": layers})
    (folder / "manifest.json").write_text(text)
    manifest = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    target = tmp_path / "a.tar"
    assert pushed.pack(folder, "localhost/a:dev", {known, "sha256:other"}, target) == len(b"new!")
    with tarfile.open(target) as archive:
        index = archive.extractfile("index.json")
        assert index is not None
        (descriptor,) = json.loads(index.read())["manifests"]
        packed = {f"sha256:{Path(name).name}" for name in archive.getnames() if name.startswith("blobs/")}
    assert packed == {fresh, config, manifest}
    assert descriptor["digest"] == manifest
    assert descriptor["size"] == len(text)
    assert descriptor["annotations"] == {pushed.NAME_ANNOTATION: "localhost/a:dev"}
