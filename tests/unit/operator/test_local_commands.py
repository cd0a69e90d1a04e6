"""Where the local driver finds an engine's program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodput.operator.local import commands
from goodput.operator.local.errors import StartError
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep, TrialId

PROGRAM = "goodput-engine-transformers"
SWEEP: dict[str, Any] = {
    "apiVersion": "goodput.dev/v1alpha1",
    "kind": "BenchmarkSweep",
    "metadata": {"name": "t"},
}
SPEC: dict[str, Any] = {
    "model": {"name": "m"},
    "engines": [{"name": "baseline", "kind": "transformers"}],
    "workload": {"promptTokens": [16], "outputTokens": [4], "requestRate": [1]},
    "slo": {"ttft": "1s"},
    "results": {"uri": "file://./results"},
}


def program(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / PROGRAM
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """The program of a baseline; our own environment has it too, and torch or not."""
    sweep: Sweep = resolve({**SWEEP, "spec": SPEC})
    ours = tmp_path / "ours"
    program(ours)
    monkeypatch.setattr(sys, "executable", str(ours / "python"))

    def find(*path: Path, torch: bool) -> str:
        monkeypatch.setattr(commands, "_has_torch", lambda: torch)
        monkeypatch.setenv("PATH", ":".join(map(str, (ours, *path))))
        return commands.server(sweep, TrialId("0", sweep.configs[0].id, 1), 8123)[0]

    return find


def test_the_baseline_starts_where_torch_is(found: Callable[..., str], tmp_path: Path) -> None:
    other = program(tmp_path / "other")
    assert found(other.parent, torch=True) == str(tmp_path / "ours" / PROGRAM)
    assert found(other.parent, torch=False) == str(other)


def test_without_torch_anywhere_it_is_named_what_to_install(found: Callable[..., str]) -> None:
    with pytest.raises(StartError, match=r"not installed here: .*pip install -e '\.\[transformers\]'"):
        found(torch=False)
