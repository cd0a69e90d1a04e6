"""Small sweeps as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Write = Callable[..., Path]

SPEC: dict[str, Any] = {
    "model": {"name": "toy"},
    "engines": [{"name": "sim", "kind": "simulated", "args": {"max_num_seqs": 16, "max_model_len": 1024}}],
    "configs": {"grid": {"max_num_batched_tokens": [256, 1024]}},
    "workload": {
        "promptTokens": [64],
        "outputTokens": [8],
        "requestRate": [4],
        "leadIn": "1s",
        "window": {"duration": "5s"},
        "warmup": {"max": "2s"},
    },
    "slo": {"ttft": "500ms"},
    "plan": {"blocks": {"min": 2}},
    "results": {"uri": "file://./results"},
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a sweep's file; what is given replaces parts of its spec."""

    def written(**parts: Any) -> Path:
        document = {
            "apiVersion": "goodput.dev/v1alpha1",
            "kind": "BenchmarkSweep",
            "metadata": {"name": "small"},
            "spec": {**SPEC, **parts},
        }
        path = tmp_path / "sweep.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    return written
