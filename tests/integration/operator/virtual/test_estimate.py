"""`goodput plan --estimate`: what the simulator expects, marked as a model's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.integration.operator.virtual.conftest import SPEC

from goodput.operator.cli import main
from goodput.operator.virtual.command import prepare, simulate
from goodput.operator.virtual.estimate import estimate, rows, warnings
from goodput.operator.virtual.world import BEGIN_SECONDS

Write = Callable[..., Path]
GPU = {"name": "gpu", "kind": "vllm", "image": "vllm/vllm-openai:v0.32.0", "args": {"max_model_len": 4096}}


def work(**parts: object) -> dict[str, object]:
    return {**SPEC["workload"], **parts}


def test_it_expects_the_wall_time_that_the_simulation_takes(write: Write, tmp_path: Path) -> None:
    """Not to the second: its blocks are all like the first one."""
    file = write()
    said: list[str] = []
    simulate(file, out=str(tmp_path / "out"), profile=None, say=said.append)
    taken = float(said[-1].split("; ")[1].split(" s of virtual time")[0]) + BEGIN_SECONDS
    assert estimate(*prepare(file, None)).wall_seconds == pytest.approx(taken, rel=0.1)


def test_starts_are_cold_or_warm_as_the_compile_cache_has_it(write: Write) -> None:
    cold = estimate(*prepare(write(engines=[GPU]), "h100-llama-3-8b"))
    shared = {**GPU, "compileCache": {"mode": "shared", "claimName": "compiled"}}
    warm = estimate(*prepare(write(engines=[shared]), "h100-llama-3-8b"))
    assert cold.starts == warm.starts == 4
    assert cold.starts_seconds == 4 * 120
    assert 2 * 120 < warm.starts_seconds < cold.starts_seconds
    assert warm.trials_seconds == cold.trials_seconds
    assert cold.gpu_hours == pytest.approx(cold.wall_seconds / 3600)


def test_a_start_that_fills_the_compile_cache_measures_nothing(write: Write) -> None:
    primed = {**GPU, "compileCache": {"mode": "prime", "claimName": "compiled"}}
    cold, warm = (estimate(*prepare(write(engines=[engine]), "h100-llama-3-8b")) for engine in (GPU, primed))
    assert warm.starts == cold.starts + 2, "one for each of the two budgets"
    assert warm.trials_seconds == cold.trials_seconds
    assert 2 * 120 < warm.starts_seconds < 6 * 120


def test_nothing_that_arrives_has_no_attainment(write: Write) -> None:
    (line, *_) = rows(estimate(*prepare(write(workload=work(requestRate=[0.001])), None)))
    assert line[3] == "–"


def test_parallel_servers_share_the_wall_time_and_not_the_gpu_hours(write: Write) -> None:
    one, two = (
        estimate(*prepare(write(engines=[GPU], plan={"blocks": {"min": 2}, "parallelism": count}), "teaching"))
        for count in (1, 2)
    )
    assert two.wall_seconds == pytest.approx(one.wall_seconds / 2)
    assert two.gpu_hours == one.gpu_hours


def test_a_config_that_cannot_meet_the_slo_is_warned_of_and_stays_in_the_plan(write: Write) -> None:
    """Twelve requests per second are more than the small budget can take; the large one can."""
    heavy = work(promptTokens=[900], requestRate=[12], window={"duration": "20s"})
    file = write(workload=heavy, configs={"grid": {"max_num_batched_tokens": [64, 2048]}})
    found = estimate(*prepare(file, None))
    assert len(found.configs) == 2
    (told,) = warnings(found)
    assert told.startswith(
        "sim max_num_batched_tokens=64 meets the SLO at no planned load: nearest is 900→8 @ 12/s with "
    )
    answer = CliRunner().invoke(main, ["plan", str(file), "--estimate"])
    assert answer.exit_code == 0, answer.output
    assert "SYNTHETIC estimate of a model in virtual time, nothing was measured" in answer.output
    assert f"warning: {told}" in answer.output
    assert answer.output.count("max_num_batched_tokens=64") > 3, "in the plan's cells, the table and the warning"


def test_a_config_that_would_not_start_is_warned_of(write: Write) -> None:
    blocks = {
        "list": [{"max_num_batched_tokens": 1024}, {"max_num_batched_tokens": 1024, "num_gpu_blocks_override": 8}]
    }
    (told,) = warnings(estimate(*prepare(write(configs=blocks), None)))
    assert "num_gpu_blocks_override=8 would fail: KvCacheTooSmall: " in told


def test_there_is_one_estimate_of_the_time(write: Write) -> None:
    file = str(write())
    plain, simulated = (CliRunner().invoke(main, ["plan", file, *more]).output for more in ([], ["--estimate"]))
    assert (plain.count("\nestimate: "), plain.count("wall time")) == (1, 0)
    assert (simulated.count("\nestimate: "), simulated.count("wall time")) == (0, 1)


@pytest.mark.parametrize(
    ("model", "profile", "warned"),
    [
        (
            "Qwen/Qwen2.5-1.5B",
            "h100-llama-3-8b",
            "is of Llama-3-8B on NVIDIA H100 80GB HBM3, not of Qwen/Qwen2.5-1.5B:",
        ),
        ("meta-llama/Llama-3.1-8B", "h100-llama-3-8b", "is of Llama-3-8B on NVIDIA H100 80GB HBM3, not of meta-llama"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "h100-llama-3-8b", None),
        ("/models/llama_3.1_8b", "rtx-4090-llama-3.1-8b", None),
        ("Qwen/Qwen2.5-1.5B", "teaching", "is of no model, so not of Qwen/Qwen2.5-1.5B either:"),
    ],
)
def test_a_profile_of_another_model_is_warned_of(write: Write, model: str, profile: str, warned: str | None) -> None:
    file = write(engines=[GPU], model={"name": model})
    answer = CliRunner().invoke(main, ["plan", str(file), "--estimate", "--profile", profile])
    assert answer.exit_code == 0, answer.output
    assert ("WARNING: gpu: profile" in answer.output) is (warned is not None)
    assert warned is None or f"WARNING: gpu: profile {profile} {warned}" in answer.output
    sweep, made = prepare(file, profile)
    assert not [text for text in made.unlike("gpu") if "device" in text]
    assert (f"profile {profile} is of" in made.describe(sweep.configs[0])) is (warned is not None)


@pytest.mark.parametrize(("product", "warned"), [("NVIDIA-H100-80GB-HBM3", False), ("NVIDIA-A100-SXM4-80GB", True)])
def test_a_profile_of_another_device_than_the_node_has_is_warned_of(write: Write, product: str, warned: bool) -> None:
    engine = {**GPU, "nodeSelector": {"nvidia.com/gpu.product": product}}
    file = write(engines=[engine], model={"name": "meta-llama/Meta-Llama-3-8B"})
    answer = CliRunner().invoke(main, ["plan", str(file), "--estimate", "--profile", "h100-llama-3-8b"])
    told = f"profile h100-llama-3-8b is of device NVIDIA H100 80GB HBM3, and nodeSelector asks for {product}: these"
    assert (f"WARNING: gpu: {told}" in answer.output) is warned


def test_real_engines_need_a_profile_and_a_plan_without_an_estimate_takes_none(write: Write) -> None:
    file = str(write(engines=[GPU]))
    refused = CliRunner().invoke(main, ["plan", file, "--estimate"])
    assert refused.exit_code == 2
    assert "--profile NAME" in refused.output
    assert CliRunner().invoke(main, ["plan", file, "--profile", "teaching"]).exit_code == 2
    assert CliRunner().invoke(main, ["plan", file]).exit_code == 0
