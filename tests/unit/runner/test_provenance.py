from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodput.analysis.schema.provenance import GpuFacts, StartLog
from goodput.runner.contract import TrialPlan
from goodput.runner.gpuinfo import gpus_of_pod
from goodput.runner.provenance import provenance, resolved_of, snapshot_of
from goodput.runner.resolved import mismatches

DATA = Path(__file__).parents[2] / "data"
INFO: dict[str, Any] = json.loads((DATA / "vllm_0.32" / "server_info.json").read_text())
COMMIT = "0123456789abcdef0123456789abcdef01234567"
Plan = Callable[..., TrialPlan]


def with_facts(plan: TrialPlan, **facts: Any) -> TrialPlan:
    return plan.model_copy(update={"server": plan.server.model_copy(update=facts)})


def test_a_real_server_on_cpu_tells_what_it_is(plan: TrialPlan) -> None:
    found = provenance("0.32.0", INFO, resolved_of(INFO, None), plan, ())
    assert (found.engine_version, found.torch) == ("0.32.0", "2.13.0+cu130")
    assert (found.cuda, found.driver, found.gpu, found.gpu_uuid) == (None, None, None, None)
    assert found.engine_commit is None  # VLLM_BUILD_COMMIT is "unknown" in this build
    expected = {"max_num_batched_tokens": "2048", "max_num_seqs": "16", "policy": "fcfs", "block_size": "128"}
    assert expected.items() <= found.resolved.items()
    assert (found.resolved["num_gpu_blocks"], found.resolved["kv_cache_size_tokens"]) == ("364", "46592")


@pytest.mark.parametrize(
    ("built", "version", "commit"),
    [
        ("0a1b2c3", "0.32.0", "0a1b2c3"),
        ("unknown", "0.33.0rc1.dev73+gd3ade61e4", "d3ade61e4"),
        (None, "0.32.0+cu130", None),
    ],
)
def test_the_commit_of_the_engine(built: str | None, version: str, commit: str | None, plan: TrialPlan) -> None:
    info = {"vllm_env": {"VLLM_BUILD_COMMIT": built}}
    assert provenance(version, info, {}, plan, ()).engine_commit == commit


def test_gpus_that_the_driver_saw(plan: TrialPlan) -> None:
    gpus = (
        GpuFacts(uuid="GPU-a", name="NVIDIA H100", memory_gib=79.6, driver="570.1"),
        GpuFacts(uuid="GPU-b", name="NVIDIA H100", memory_gib=79.5),
    )
    found = provenance("0.32.0", None, {}, plan, gpus)
    assert (found.gpu_uuid, found.gpu) == ("GPU-a,GPU-b", "NVIDIA H100, NVIDIA H100")
    assert (found.gpu_memory_gib, found.driver) == (79.5, "570.1")


def test_the_baseline_tells_its_snapshot_type_and_device(plan: TrialPlan) -> None:
    info = {
        "vllm_config": {"model_config": {"dtype": "float32", "revision": None}, "device_config": {"device": "cpu"}},
        "system_env": {"torch_version": "2.13.0", "is_cuda_available": "False"},
        "transformers": {"model_commit": COMMIT},
    }
    found = provenance("5.19.0", info, resolved_of(info, None), plan, ())
    assert (found.engine_version, found.torch, found.model_revision) == ("5.19.0", "2.13.0", COMMIT)
    assert found.resolved == {"device": "cpu", "dtype": "float32"}


def test_the_snapshot_is_known_from_the_path_the_log_or_the_cache(plan: TrialPlan) -> None:
    path = {"vllm_config": {"model_config": {"model": f"/hub/models--a--b/snapshots/{COMMIT}"}}}
    assert snapshot_of(path, plan) == COMMIT
    assert snapshot_of(INFO, plan) is None
    assert snapshot_of(INFO, with_facts(plan, log=StartLog(model_snapshot=COMMIT))) == COMMIT
    assert snapshot_of(None, with_facts(plan, model_revision=COMMIT)) == COMMIT
    assert provenance(None, path, {}, plan, ()).model_revision == COMMIT


def test_what_server_info_hides_the_log_says() -> None:
    log = StartLog(
        attention_backend="FLASHINFER",
        resolved={"max_seq_len": "2048", "kv_cache_dtype": "fp8", "enforce_eager": "True", "model": "m"},
    )
    resolved = resolved_of(None, log)
    assert resolved == {
        "attention_backend": "FLASHINFER",
        "cache_dtype": "fp8",
        "enforce_eager": "True",
        "max_model_len": "2048",
    }
    asked = {"attention_backend": "flash_attn", "max_model_len": "2k", "enforce_eager": "true", "kv_cache_dtype": "fp8"}
    assert mismatches(asked, resolved) == [
        "attention_backend was asked to be flash_attn and is FLASHINFER",
        "max_model_len was asked to be 2k and is 2048",
    ]
    assert resolved_of({"vllm_config": {"cache_config": {"cache_dtype": "auto"}}}, log)["cache_dtype"] == "auto"


PAGE = """
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a",modelName="NVIDIA H100",DCGM_FI_DRIVER_VERSION="570.1",pod="server-0"} 81000
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",modelName="NVIDIA H100",DCGM_FI_DRIVER_VERSION="570.1",pod="server-0"} 559
DCGM_FI_DEV_FB_FREE{gpu="1",UUID="GPU-b",modelName="NVIDIA H100",DCGM_FI_DRIVER_VERSION="570.1",pod=""} 81559
"""


def test_an_exporter_says_which_gpu_is_the_pods() -> None:
    (gpu,) = gpus_of_pod(PAGE, "server-0")
    assert gpu == GpuFacts(uuid="GPU-a", name="NVIDIA H100", memory_gib=81559 / 1024, driver="570.1")
    assert gpus_of_pod(PAGE, "server-1") == ()


def test_a_gpu_is_not_guessed() -> None:
    two = (DATA / "dcgm.txt").read_text()
    assert gpus_of_pod(two, "server-0") == ()
    one = 'DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a",modelName="NVIDIA H100"} 1980\n'
    assert [gpu.uuid for gpu in gpus_of_pod(one, "server-0")] == ["GPU-a"]
    assert gpus_of_pod("<html>", "server-0") == ()
