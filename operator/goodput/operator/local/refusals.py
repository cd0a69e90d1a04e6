"""What a sweep may ask of a cluster but not of one machine."""

from __future__ import annotations

from collections.abc import Iterator

from goodput.operator.spec.errors import Problem
from goodput.operator.sweep import Sweep


def local_problems(sweep: Sweep) -> Iterator[Problem]:
    """Everything that the local driver cannot do."""
    if sweep.spec.suspend:
        yield Problem("spec.suspend", True, "a suspended sweep does nothing", "write false; Ctrl-C suspends it here")
    parallelism = sweep.spec.plan.parallelism
    if parallelism > 1 and any(config.gpus for config in sweep.configs):
        yield Problem(
            "spec.plan.parallelism",
            parallelism,
            "servers with GPUs would share them on one machine",
            "write 1, or run it in a cluster",
        )
