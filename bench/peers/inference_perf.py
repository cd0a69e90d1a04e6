"""inference-perf of the Kubernetes serving group."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.base import MODEL, OFFLINE, PROMPT_TOKENS, Answer, Task

_CONFIG = "config.yaml"
_FOLDER = "reports"
_WORKERS = 2


@dataclass(frozen=True)
class InferencePerf:
    """Two workers: its default, one per core, would be the same on the two cores of the measurement."""

    bin: Path
    name: str = "inference-perf"
    version: str = "0.7.0"

    def prepare(self, task: Task) -> list[str]:
        """A closed loop; its configuration is a file (JSON is YAML)."""
        (task.folder / _CONFIG).write_text(json.dumps(_config(task), indent=1))
        return [str(self.bin / "inference-perf"), "--config_file", _CONFIG]

    def environment(self) -> Mapping[str, str]:
        """Nothing is looked up."""
        return OFFLINE

    def answers(self, task: Task) -> list[Answer]:
        """One record per request; times of ``perf_counter``, which is CLOCK_MONOTONIC on Linux, in s."""
        rows = json.loads((task.folder / _FOLDER / "per_request_lifecycle_metrics.json").read_text())
        return [_answer(row) for row in rows]


def _config(task: Task) -> dict[str, Any]:
    stage = {"num_requests": task.requests, "concurrency_level": task.concurrency}
    load = {
        "type": "concurrent",
        "stages": [stage],
        "num_workers": _WORKERS,
        "worker_max_concurrency": max(100, task.concurrency),
        "request_timeout": task.timeout_seconds,
    }
    fields = {"request": False, "response": False, "info": True, "response_chunks": False, "computed_metrics": True}
    lifecycle = {
        "summary": True,
        "per_stage": True,
        "per_request": True,
        "percentiles": [50, 99],
        "use_server_output_tokens": True,
        "per_request_fields": fields,
    }
    return {
        "api": {"type": "completion", "streaming": True},
        "data": {
            "type": "random",
            "input_distribution": _fixed(PROMPT_TOKENS, task.requests),
            "output_distribution": _fixed(task.output_tokens, task.requests),
        },
        "load": load,
        "server": {"type": "vllm", "model_name": MODEL, "base_url": task.url, "ignore_eos": True},
        "tokenizer": {"pretrained_model_name_or_path": str(task.tokenizer)},
        "report": {"request_lifecycle": lifecycle},
        "storage": {"local_storage": {"path": _FOLDER}},
    }


def _fixed(length: int, count: int) -> dict[str, Any]:
    bounds = {"min": length, "max": length, "mean": length, "std_dev": 0}
    return {"type": "fixed", **bounds, "total_count": count}


def _answer(row: dict[str, Any]) -> Answer:
    metrics = row.get("computed_metrics") or {}
    gaps = metrics.get("inter_token_latencies")
    return Answer(
        success=not row.get("error"),
        started=row.get("start_time"),
        ttft=metrics.get("time_to_first_token"),
        gaps=tuple(gaps) if gaps else None,
    )
