"""The base of the images in tests: a Debian with Python, made by debootstrap and kept in the cache."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from testcluster.layout import Layout
from testcluster.shell import run, step

SUITE = "bookworm"
INCLUDED = ("ca-certificates", "python3", "python3-venv")
NAME = f"localhost/goodput-base:{SUITE}"
# What no program of ours reads: package lists and archives, manuals, translations.
DROPPED = (
    "var/cache/apt",
    "var/lib/apt/lists",
    *(f"usr/share/{x}" for x in ("doc", "info", "locale", "man")),
)


def archive(layout: Layout) -> Path:
    """Path of the base's root filesystem as a tar file, made on first use."""
    target = layout.cache / "base" / f"{SUITE}-{'-'.join(INCLUDED)}.tar"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        root = target.with_suffix(f".root.{os.getpid()}")
        try:
            with step(f"Debian {SUITE} with Python (once)"):
                _make(root, target)
        finally:
            shutil.rmtree(root, ignore_errors=True)
    return target


def _make(root: Path, target: Path) -> None:
    """Bootstrap ``root``, drop what is not needed and pack it."""
    run(["debootstrap", "--variant=minbase", f"--include={','.join(INCLUDED)}", SUITE, str(root)])
    partial = target.with_suffix(f".{os.getpid()}")
    excluded = [f"--exclude=./{path}/*" for path in ("proc", "sys", "dev", *DROPPED)]
    run(["tar", "-C", str(root), "--numeric-owner", "-cf", str(partial), *excluded, "."])
    partial.rename(target)
