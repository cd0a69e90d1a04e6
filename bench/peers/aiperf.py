"""NVIDIA's aiperf."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.base import MODEL, PROMPT_TOKENS, Answer, Task, monotonic

_FOLDER = "artifacts"


@dataclass(frozen=True)
class Aiperf:
    """With the server's token counts: its own tokenizing would merge tokens and stretch every gap."""

    bin: Path
    name: str = "aiperf"
    version: str = "0.13.0"

    def prepare(self, task: Task) -> list[str]:
        """A closed loop."""
        options = {
            "model": MODEL,
            "url": task.url,
            "endpoint-type": "completions",
            "tokenizer": str(task.tokenizer),
            "prompt-input-tokens-mean": str(PROMPT_TOKENS),
            "prompt-output-tokens-mean": str(task.output_tokens),
            "extra-inputs": "ignore_eos:true",
            "concurrency": str(task.concurrency),
            "request-count": str(task.requests),
            "request-timeout-seconds": f"{task.timeout_seconds:g}",
            "output-artifact-dir": str(task.folder / _FOLDER),
            "export-level": "records",
            "ui-type": "none",
            "random-seed": "1",
        }
        flags = ["--streaming", "--use-server-token-count", "--use-legacy-max-tokens"]
        flags += ["--no-server-metrics", "--no-gpu-telemetry"]
        given = [word for name, value in options.items() for word in (f"--{name}", value)]
        return [str(self.bin / "aiperf"), "profile", *given, *flags]

    def environment(self) -> Mapping[str, str]:
        """Not offline: then it would refuse a tokenizer that is a folder."""
        return {"HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": "", "HF_DATASETS_OFFLINE": ""}

    def answers(self, task: Task) -> list[Answer]:
        """One record a line; times of the wall clock in ns, latencies in ms."""
        lines = (task.folder / _FOLDER / "profile_export.jsonl").read_text().splitlines()
        return [_answer(json.loads(line)) for line in lines]


def _answer(record: dict[str, Any]) -> Answer:
    about, metrics = record["metadata"], record.get("metrics") or {}
    ttft, gaps = metrics.get("time_to_first_token"), metrics.get("inter_chunk_latency")
    return Answer(
        success=not record.get("error") and not about.get("was_cancelled"),
        started=monotonic(about["request_start_ns"] / 1e9),
        ttft=None if ttft is None else ttft["value"] / 1e3,
        gaps=None if gaps is None else tuple(gap / 1e3 for gap in gaps["value"]),
    )
