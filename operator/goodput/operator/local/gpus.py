"""The GPUs of this machine, as ``nvidia-smi`` shows them. Without it there are none."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from goodput.analysis.schema.provenance import GpuFacts

QUERY: Final = ("index", "uuid", "name", "memory.total", "memory.used", "driver_version")
TIMEOUT_SECONDS: Final = 10.0
_MIB_PER_GIB: Final = 1024


@dataclass(frozen=True)
class Gpu:
    """One GPU now. Memory in MiB."""

    index: str
    uuid: str
    name: str
    total_mib: float
    used_mib: float
    driver: str

    @property
    def facts(self) -> GpuFacts:
        """What is kept of it in the records."""
        return GpuFacts(uuid=self.uuid, name=self.name, memory_gib=self.total_mib / _MIB_PER_GIB, driver=self.driver)


def gpus() -> tuple[Gpu, ...]:
    """All GPUs that servers started from here may use; empty where there are none or they cannot be read."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    command = [program, f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return visible(parse(answer.stdout), os.environ.get("CUDA_VISIBLE_DEVICES"))


def parse(text: str) -> tuple[Gpu, ...]:
    """One GPU a line, in the order of `QUERY`. A line with a value that is no number is left out."""
    found: list[Gpu] = []
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        try:
            index, uuid, name, total, used, driver = words
            found.append(Gpu(index, uuid, name, float(total), float(used), driver))
        except ValueError:
            continue
    return tuple(found)


def visible(found: Sequence[Gpu], devices: str | None) -> tuple[Gpu, ...]:
    """Those that CUDA_VISIBLE_DEVICES names, in its order: by index, or by the beginning of their UUID."""
    if devices is None:
        return tuple(found)
    named = [each.strip() for each in devices.split(",") if each.strip()]
    return tuple(gpu for name in named for gpu in found if gpu.index == name or gpu.uuid.startswith(name))
