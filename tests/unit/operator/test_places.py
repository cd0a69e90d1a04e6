"""`goodput plan` on sweeps for a cluster and for one machine: each sees what holds for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from goodput.operator.cli import main

GPU = {
    "name": "vllm",
    "kind": "vllm",
    "image": "vllm/vllm-openai:v0.32.0",
    "resources": {"limits": {"nvidia.com/gpu": 1}},
}
SIMULATED = {"name": "sim", "kind": "simulated", "profile": "/profiles/mine.yaml"}
STORE, FILES = {"uri": "s3://bench/sweeps"}, {"uri": "file://./results"}
PARALLEL = (
    "spec.plan.parallelism: 4: servers with GPUs would share them on one machine; write 1, or run it in a cluster"
)
NO_IMAGE = "spec.engines[0].image: is required in a cluster for kinds vllm and transformers; name the image"


def plan(folder: Path, command: str = "plan", **parts: Any) -> Result:
    spec = {
        "model": {"name": "some/model"},
        "engines": [GPU],
        "workload": {"requestRate": [1]},
        "slo": {"ttft": "1s"},
        "results": STORE,
        **parts,
    }
    file = folder / "sweep.yaml"
    kind = {"apiVersion": "goodput.dev/v1alpha1", "kind": "BenchmarkSweep"}
    file.write_text(yaml.safe_dump({**kind, "metadata": {"name": "t"}, "spec": spec}))
    return CliRunner().invoke(main, [command, str(file)])


@pytest.mark.parametrize(
    ("parts", "note"),
    [
        ({"plan": {"parallelism": 4}}, f"note: cannot run on this machine: {PARALLEL}"),
        ({"suspend": True}, "note: cannot run on this machine: spec.suspend: true: a suspended sweep does nothing"),
        ({"engines": [{"name": "vllm", "kind": "vllm"}]}, f"note: cannot run in a cluster: {NO_IMAGE}"),
        ({"engines": [SIMULATED]}, "note: cannot run on this machine: spec.engines[0].profile: "),
    ],
)
def test_what_holds_in_one_place_alone_is_a_note(tmp_path: Path, parts: dict[str, Any], note: str) -> None:
    done = plan(tmp_path, **parts)
    assert done.exit_code == 0, done.output
    assert note in done.output
    assert done.output.count("note: ") == 1
    assert "not_run" in done.output


def test_a_sweep_for_both_places_has_no_note(tmp_path: Path) -> None:
    done = plan(tmp_path)
    assert (done.exit_code, done.output.count("note: ")) == (0, 0)
    assert "; in a cluster in sweep=<namespace>.t.<uid>\n" in done.output


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"results": FILES, "plan": {"parallelism": 4}}, PARALLEL),
        ({"engines": [{**SIMULATED, "profile": "teachin"}]}, "unknown profile 'teachin'"),
        ({"plan": {"parallelism": 0}}, "spec.plan.parallelism"),
    ],
)
def test_what_can_run_nowhere_is_refused(tmp_path: Path, parts: dict[str, Any], words: str) -> None:
    done = plan(tmp_path, **parts)
    assert done.exit_code == 2
    assert words in done.output


def test_a_run_on_this_machine_is_refused_what_is_a_note_of_the_plan(tmp_path: Path) -> None:
    done = plan(tmp_path, "run", plan={"parallelism": 4})
    assert done.exit_code == 2
    assert PARALLEL in done.output
