from __future__ import annotations

import os
from pathlib import Path

import pytest

from goodput.runner.load.cpus import available_cpus

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("text", "expected"), [("50000 100000\n", 0.5), ("max 100000\n", CORES), ("900000000 100000", CORES), ("", CORES)]
)
def test_a_limit_below_the_cores_counts(tmp_path: Path, text: str, expected: float) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert available_cpus(tmp_path / "cpu.max") == expected


def test_without_a_limit_the_cores_count(tmp_path: Path) -> None:
    assert available_cpus(tmp_path / "none") == CORES
