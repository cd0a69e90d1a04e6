"""A real vLLM in restricted pods: compiled, with a compile cache that outlives the servers, its model on a claim."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from bench.smollm2 import model_folder
from kubernetes import client
from kubernetes.client import ApiClient
from tests.vllm import checks

from goodput.analysis.packing import unpack

if TYPE_CHECKING:
    from tests.cluster.e2e.conftest import Bench

BLOCKS, BUDGETS = 2, (128, 2048)
FLAG, INIT = "max_num_batched_tokens", "init_engine_seconds"
SECONDS = 2400
SHOWN = (
    *("start_order", "block", "max_num_batched_tokens", "compile_cache", "start_seconds", "state", "load_state"),
    *("attempted", "good", "ttft_p50_seconds", "tpot_p50_seconds", "output_tokens_per_second"),
)
pytestmark = [pytest.mark.vllm, pytest.mark.timeout(SECONDS + 120)]
Body = dict[str, Any]


@pytest.fixture
def claims(kube_api: ApiClient, namespace: str, tmp_path: Path) -> Iterator[None]:
    """``models``, with the model's folder, and ``compiled``, empty and open to every user: folders of the node."""
    compiled = tmp_path / "compiled"
    compiled.mkdir()
    compiled.chmod(0o777)
    core: Any = client.CoreV1Api(kube_api)
    folders = {"models": model_folder().parent, "compiled": compiled}
    for name, folder in folders.items():
        common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        claim = {"name": name, "namespace": namespace}
        volume = {"name": f"{namespace}-{name}"}
        spec = {**common, "capacity": {"storage": "1Gi"}, "claimRef": claim, "hostPath": {"path": str(folder)}}
        core.create_persistent_volume({"metadata": volume, "spec": {**spec, "persistentVolumeReclaimPolicy": "Retain"}})
        asked = {**common, "volumeName": volume["name"], "resources": {"requests": {"storage": "1Gi"}}}
        core.create_namespaced_persistent_volume_claim(namespace, {"metadata": {"name": name}, "spec": asked})
    yield
    for name in folders:
        core.delete_persistent_volume(f"{namespace}-{name}")


def sweep(bench: Bench) -> Body:
    """2 budgets × 1 load × 2 blocks."""
    variables = {
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; a share of the node's memory is more than the pod may have
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # pods share the node: bound, each would take the same core
        "OMP_NUM_THREADS": "1",
        "VLLM_USE_AOT_COMPILE": "0",  # vLLM 0.32 on CPU never loads what it saved that way: torch's caches remain
        "TORCH_LOGS": "torch._functorch._aot_autograd.autograd_cache",  # says whether they hit
    }
    engine = {
        "name": "vllm",
        "kind": "vllm",
        "image": bench.info.vllm_image,
        "args": {"dtype": "bfloat16", "max_model_len": 2048, "max_num_seqs": 16},
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "resources": {
            "requests": {"cpu": "250m", "memory": "4Gi"},
            "limits": {"memory": "6Gi", "nvidia.com/gpu": "0"},
        },
        "compileCache": {"mode": "shared", "claimName": "compiled"},
        "startupTimeout": "15m",
    }
    body = bench.sweep(budgets=list(BUDGETS), blocks=BLOCKS, plan={"retries": 5}, engines=[engine])
    model = {"name": f"/models/{model_folder().name}", "servedName": "smollm2"}
    body["spec"]["model"] = {**model, "cache": {"claimName": "models", "offline": True}}
    body["spec"]["workload"] |= {"promptTokens": [256], "outputTokens": [16], "requestRate": [1]}
    body["spec"]["workload"] |= {"leadIn": "3s", "window": {"duration": "12s"}, "warmup": {"max": "10s"}}
    body["spec"]["runner"]["resources"] = {"requests": {"cpu": "1"}}  # more than the server's: it must not be late
    body["spec"]["slo"] = {"ttft": "2s", "tpot": "100ms"}
    return body


def test_a_sweep_of_a_real_vllm_tells_cold_starts_from_warm_ones(bench: Bench, claims: None) -> None:
    bench.apply(sweep(bench))
    status = bench.succeeded(SECONDS)
    assert (status["progress"], status["evidence"]) == ("4/4", "measured")
    cells, configs = bench.table("cells"), bench.table("configs")
    print(table([{name: row[name] for name in SHOWN} for row in cells]))
    folders = [key.removesuffix("/cell.json") for key in bench.stored() if key.endswith("/cell.json")]
    documents = [json.loads(bench.read(f"{folder}/cell.json")) for folder in folders]
    print(table([started(document) for document in documents]))
    print(f"\n{status['phase']}: {json.dumps(status.get('verdict'))}")
    checks.all_measured(cells, BLOCKS * len(BUDGETS))
    checks.log_is_parsed(cells)
    for row in configs:
        assert row["image"] == bench.info.vllm_image
        assert row["image_digest"]
    checks.provenance_is_complete(configs, documents)
    first_start_is_cold([started(document) for document in documents])
    for folder, document in zip(folders, documents, strict=True):
        if document["outcome"] == "valid":
            requests = pq.read_table(io.BytesIO(bench.read(f"{folder}/requests.parquet")))
            checks.lengths_are_exact(document, requests)
    logs = [unpack(bench.read(key)).decode() for key in bench.stored() if key.endswith("/server.log.zst")]
    assert len(logs) >= BLOCKS * len(BUDGETS)
    assert all("version 0.32.0" in log for log in logs)


def first_start_is_cold(attempts: list[Body]) -> None:
    """Of all attempts, void ones too: the log says that the first start compiled, and each budget's second loaded.

    A budget's first start may find what the other budget compiled: on CPU the graph can be the same.
    """
    cold, *later = sorted(attempts, key=lambda row: row["start_order"])
    assert cold["compile_cache"] == "miss", "the cache was empty"
    assert {row["compile_cache"] for row in later} <= {"hit", "miss"}
    for budget in map(str, BUDGETS):
        _, *again = (row for row in (cold, *later) if row[FLAG] == budget)
        assert {row["compile_cache"] for row in again} == {"hit"}
    assert all(row[INIT] < cold[INIT] for row in later if row["compile_cache"] == "hit")


def started(document: Body) -> Body:
    """Of one attempt at a cell, what its server's log says of the start."""
    start, said = document["start"], document["start"]["log"]
    names = ("compile_cache", INIT, "weights_seconds", "kv_cache_tokens")
    return {
        "start_order": start["order"],
        "block": document["key"]["block"],
        "attempt": document["attempt"],
        FLAG: document["config"]["swept"][FLAG],
        "start_seconds": start["seconds"],
        **{name: said[name] for name in names},
        "outcome": document["outcome"],
        "reason": document["reason"],
    }


def table(rows: list[Body]) -> str:
    """Rows by start, for a person."""
    names = list(rows[0])
    lines = [names, *([_text(row[name]) for name in names] for row in sorted(rows, key=lambda row: row["start_order"]))]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        ["", *("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in lines)]
    )


def _text(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
