"""How much CPU this process tree may have (standard library only)."""

from __future__ import annotations

import os
from pathlib import Path

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")  # of cgroup v2, as a container sees its own


def available_cpus(cpu_max: Path = CPU_MAX) -> float:
    """Cores it may run on, or the container's CPU limit where that is less."""
    cores = float(len(os.sched_getaffinity(0)))
    try:
        quota, period = cpu_max.read_text().split()
        return min(cores, int(quota) / int(period))
    except (OSError, ValueError):  # no such file, or "max": no limit
        return cores
