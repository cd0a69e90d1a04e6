"""`goodput calibrate` on a sweep whose true step times are known: the teaching profile, in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from goodput.analysis.store import open_store
from goodput.operator.calibration import command
from goodput.operator.cli import main

SWEEP = """
apiVersion: goodput.dev/v1alpha1
kind: BenchmarkSweep
metadata: {name: known}
spec:
  model: {name: teaching-model}
  engines: [{name: simulated, kind: simulated, profile: teaching, args: {max_model_len: 4096, max_num_seqs: 64}}]
  configs: {grid: {max_num_batched_tokens: [512, 2048, 8192]}}
  workload:
    promptTokens: [1200]
    outputTokens: [40]
    requestRate: [3, 12]
    leadIn: 2s
    window: {duration: 10s}
    warmup: {max: 3s}
  slo: {ttft: 500ms, tpot: 25ms}
  plan: {blocks: {min: 2}, sentinel: "off"}
  results: {uri: "file://./results"}
"""
#: Mean relative errors on cells that the fit did not see. The base is another device with another shape of costs.
BOUNDS = {"ttft": 0.15, "tpot": 0.05, "e2e": 0.05}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the sweep's results."""
    folder = tmp_path_factory.mktemp("known")
    (folder / "sweep.yaml").write_text(SWEEP)
    done = CliRunner().invoke(main, ["simulate", str(folder / "sweep.yaml"), "--out", f"file://{folder}/results"])
    assert done.exit_code == 0, done.output
    (results,) = (folder / "results").iterdir()
    return f"file://{results}"


def test_cells_that_the_fit_did_not_see_are_predicted(sweep: str, tmp_path: Path) -> None:
    found = command.run(open_store(sweep), base="h100-llama-3-8b", name="mine", hold_out=0.34)
    unseen = [one for one in found.predictions if not one.fitted]
    assert (len(unseen), len(found.predictions), found.unusable) == (4, 12, ())
    for name, bound in BOUNDS.items():
        errors = [abs(one.error(name) or 0.0) for one in unseen]
        assert sum(errors) / len(errors) < bound, (name, errors)


def test_the_command_writes_a_profile_that_says_what_it_is(sweep: str, tmp_path: Path) -> None:
    out = tmp_path / "mine.yaml"
    done = CliRunner().invoke(main, ["calibrate", sweep, "--base", "h100-llama-3-8b", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "SYNTHETIC" in done.output
    assert "blocks of one config and load differ by up to 1." in done.output
    assert "mean error on cells that the fit did not see: TTFT" in done.output
    text = out.read_text()
    assert text.startswith("# SYNTHETIC")
    profile = yaml.safe_load(text)
    assert (profile["name"], profile["synthetic"], profile["model"]) == ("mine", True, "teaching-model")
    assert "synthetic cells of sweep virtual.known." in profile["source"]


@pytest.mark.parametrize(
    ("base", "complaint"), [("fixed-rate", "has no costs to fit"), ("h200", "unknown profile 'h200'; known are a100")]
)
def test_a_base_that_cannot_be_moved_is_refused(sweep: str, tmp_path: Path, base: str, complaint: str) -> None:
    done = CliRunner().invoke(main, ["calibrate", sweep, "--base", base, "--out", str(tmp_path / "no.yaml")])
    assert done.exit_code == 1
    assert complaint in done.output
    assert not (tmp_path / "no.yaml").exists()


def test_two_engines_are_not_fitted_together(tmp_path: Path) -> None:
    second = "{name: other, kind: simulated, profile: instant, args: {max_model_len: 4096, max_num_seqs: 64}}"
    (tmp_path / "sweep.yaml").write_text(SWEEP.replace("64}}]", f"64}}}}, {second}]"))
    out = str(tmp_path / "results")
    assert CliRunner().invoke(main, ["simulate", str(tmp_path / "sweep.yaml"), "--out", out]).exit_code == 0
    (results,) = (tmp_path / "results").iterdir()
    words = ["calibrate", str(results), "--base", "teaching", "--out", str(tmp_path / "mine.yaml")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert (
        "a profile is of one model on one kind of server, and this sweep has 2 engines (other, simulated)"
        in done.output
    )
    assert not (tmp_path / "mine.yaml").exists()


def test_a_folder_that_is_not_there_is_named_before_anything_is_fitted(sweep: str, tmp_path: Path) -> None:
    out = tmp_path / "none" / "mine.yaml"
    done = CliRunner().invoke(main, ["calibrate", sweep, "--base", "h100-llama-3-8b", "--out", str(out)])
    assert done.exit_code == 2
    assert f"there is no folder {out.parent}" in done.output
