"""The environments that the peers run in, one each: ``python -m bench.peers.setup [NAME...]``.

Each is installed from ``constraints/peers/NAME.txt`` (every file by its hash, for Linux on x86-64) into
``$GOODPUT_CACHE/peers/NAME``, and again only when that file changes. The one called ``vllm`` serves, too: it is the
real server of the end-to-end tests.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.peers.torch_cpu import missing_tool, torch_without_cuda
from bench.peers.vllm_cpu import prepare
from testcluster.layout import from_environment

PINS = Path(__file__).parents[2] / "constraints" / "peers"
PIP_OPTIONS = ("--disable-pip-version-check", "-q", "install", "--no-deps", "--no-compile", "--require-hashes")
_STAMP = "installed.sha256"  # of the pins, written last


class PeerMissingError(Exception):
    """A peer cannot be run on this machine; the message says why."""


@dataclass(frozen=True)
class Wanted:
    """What a peer's environment needs besides its pins, which are for this Python alone."""

    python: tuple[int, int]
    free_gib: float  # on the disk, to install it


WANTED = {
    "vllm": Wanted((3, 11), 4.0),
    "aiperf": Wanted((3, 11), 1.5),
    "guidellm": Wanted((3, 11), 3.0),
    "inference-perf": Wanted((3, 12), 1.5),
    "vidur": Wanted((3, 11), 2.0),  # a simulator, for `bench.engines`
}


def bin_folder(name: str) -> Path:
    """Where the programs of a peer are; installs it first where it is not there yet.

    Raises:
        PeerMissingError: another platform, no such Python, no room, no compiler, or pip failed.
    """
    folder = from_environment().cache / "peers" / name
    with once(folder, PINS / f"{name}.txt") as wanted:
        if wanted:
            _install(name, folder)
    return folder / "bin"


@contextmanager
def once(folder: Path, *inputs: Path) -> Iterator[bool]:
    """Whether a folder must be made from the inputs: it is not there, or they changed since.

    One process at a time may enter; the folder counts as made when the body ends without an error.
    """
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()
    stamp = folder / _STAMP
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = not stamp.exists() or stamp.read_text() != digest
        yield wanted
        if wanted:
            stamp.write_text(digest)


def _install(name: str, folder: Path) -> None:
    pins, wanted = PINS / f"{name}.txt", WANTED[name]
    with_torch = "\ntorch==" in pins.read_text()
    python = find_python(wanted.python)
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise PeerMissingError("its pins are for Linux on x86-64")
    if python is None:
        raise PeerMissingError(f"there is no Python {wanted.python[0]}.{wanted.python[1]}")
    if with_torch and (tool := missing_tool()) is not None:
        raise PeerMissingError(f"there is no {tool}, which makes torch importable without CUDA")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    free = shutil.disk_usage(folder).free / 2**30
    if free < wanted.free_gib:
        raise PeerMissingError(f"it needs {wanted.free_gib:g} GiB in {folder}, {free:.1f} are free")
    print(f"installing {name} into {folder}", file=sys.stderr, flush=True)
    try:
        _run([python, "-m", "venv", str(folder)])
        _run([str(folder / "bin" / "pip"), *PIP_OPTIONS, "-r", str(pins)])
        packages = next(folder.glob("lib/python3*/site-packages"))
        if name == "vllm":
            prepare(packages)
        elif with_torch:
            torch_without_cuda(packages)
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "").strip().splitlines()[-1:]
        raise PeerMissingError(f"it cannot be installed: {' '.join(last)}") from error


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def find_python(wanted: tuple[int, int]) -> str | None:
    """An interpreter of that version: this one, the one on the path, one of pyenv's."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    name = f"{wanted[0]}.{wanted[1]}"
    installed = sorted(versions.glob(f"{name}.*/bin/python"))
    candidates = [sys.executable, f"python{name}", *map(str, installed)]
    return next((program for program in candidates if _is(program, wanted)), None)


def _is(program: str, wanted: tuple[int, int]) -> bool:
    check = f"import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != {wanted})"
    try:
        return subprocess.run([program, "-c", check], check=False, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def main() -> None:
    """Install what is named, or all."""
    for name in sys.argv[1:] or WANTED:
        try:
            print(f"{name}: {bin_folder(name)}")
        except PeerMissingError as error:
            print(f"{name}: missing: {error}")


if __name__ == "__main__":
    main()
