"""Mounts below a folder."""

from __future__ import annotations

import re
from pathlib import Path

from testcluster.shell import run


def below(folder: Path, mountinfo: str) -> list[str]:
    """Mount points under ``folder`` in the order in which they must go: the last made first.

    ``mountinfo`` is the text of /proc/self/mountinfo, where spaces in paths are written as octal escapes.
    """
    points = [_plain(line.split()[4]) for line in mountinfo.splitlines() if line]
    return [point for point in reversed(points) if point == str(folder) or point.startswith(f"{folder}/")]


def unmount_all(folder: Path) -> None:
    """Unmount everything under ``folder``."""
    for point in below(folder, Path("/proc/self/mountinfo").read_text()):
        run(["umount", "--lazy", point], check=False)


def _plain(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), text)
