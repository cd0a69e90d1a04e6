"""What one machine knows of a server: its GPUs, and which model it loads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goodput.operator.local.gpus import Gpu, parse, visible
from goodput.operator.local.modelfiles import content_hash, snapshot

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LINES = """0, GPU-1f2e, NVIDIA H100 80GB HBM3, 81559, 1, 570.124.06
1, GPU-9a8b, NVIDIA H100 80GB HBM3, 81559, 70321, 570.124.06
2, GPU-0000, NVIDIA A100, [N/A], [N/A], 570.124.06
"""


def test_nvidia_smi_as_it_prints() -> None:
    first, second = parse(LINES)
    assert first == Gpu("0", "GPU-1f2e", "NVIDIA H100 80GB HBM3", 81559, 1, "570.124.06")
    assert second.facts.memory_gib == pytest.approx(79.65, abs=0.01)
    assert parse("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.") == ()


@pytest.mark.parametrize(
    ("devices", "seen"), [(None, ["0", "1"]), ("1", ["1"]), ("1,0", ["1", "0"]), ("GPU-9a", ["1"]), ("", []), ("7", [])]
)
def test_the_gpus_that_cuda_may_use(devices: str | None, seen: list[str]) -> None:
    assert [gpu.index for gpu in visible(parse(LINES), devices)] == seen


def model(folder: Path, *, weight: bytes = b"\0" * 8, dtype: str = "BF16") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text('{"hidden_size": 4}')
    header = json.dumps({"w": {"dtype": dtype, "shape": [4], "data_offsets": [0, 8]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + weight)
    return folder


def test_a_local_folders_hash_is_of_what_its_label_says(tmp_path: Path) -> None:
    first = content_hash(str(model(tmp_path / "a")))
    assert first is not None
    assert first.startswith("config, index and safetensors headers sha256:")
    assert content_hash(str(model(tmp_path / "b"))) == first, "the folder's name is no part of it"
    assert content_hash(str(model(tmp_path / "c", dtype="F16"))) != first
    assert content_hash(str(model(tmp_path / "d", weight=b"\0" * 16))) != first
    (tmp_path / "b" / "config.json").write_text('{"hidden_size": 8}')
    assert content_hash(str(tmp_path / "b")) != first


def test_a_name_on_the_hub_has_no_files_here() -> None:
    assert content_hash("Qwen/Qwen2.5-1.5B-Instruct") is None


def test_the_snapshot_in_the_hubs_cache(tmp_path: Path) -> None:
    folder = tmp_path / "hub" / "models--a--b"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(COMMIT)
    (folder / "snapshots" / COMMIT).mkdir(parents=True)
    environment = {"HF_HOME": str(tmp_path)}
    assert snapshot("a/b", None, environment) == COMMIT
    assert snapshot("a/b", COMMIT, environment) == COMMIT
    assert snapshot("a/b", "v2", environment) is None
    assert snapshot("a/c", None, environment) is None
    assert snapshot(f"{folder}/snapshots/{COMMIT}", None, {}) == COMMIT
    assert snapshot("a/b", None, {"HF_HUB_CACHE": str(tmp_path / "hub")}) == COMMIT
