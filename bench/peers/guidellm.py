"""GuideLLM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.base import MODEL, OFFLINE, PROMPT_TOKENS, Answer, Task, monotonic

_RESULT = "result.json"


@dataclass(frozen=True)
class Guidellm:
    """Its records hold no single gaps, only their mean."""

    bin: Path
    name: str = "guidellm"
    version: str = "0.8.1"

    def prepare(self, task: Task) -> list[str]:
        """A closed loop."""
        backend = {
            "kind": "openai_http",
            "target": task.url,
            "model": MODEL,
            "request_format": "/v1/completions",
            "timeout": f"{task.timeout_seconds:g}",
        }
        options = {
            "backend": _pairs(backend),
            "profile": f"kind=concurrent,streams={task.concurrency}",
            "constraint": f"kind=max_requests,count={task.requests}",
            "data": f"kind=synthetic_text,prompt_tokens={PROMPT_TOKENS},output_tokens={task.output_tokens}",
            "tokenizer": f"kind=huggingface_auto,model={task.tokenizer}",
            "output": f"kind=json,path={task.folder / _RESULT}",
        }
        given = [word for name, value in options.items() for word in (f"--{name}", value)]
        return [str(self.bin / "guidellm"), "run", *given, "--disable-console-interactive"]

    def environment(self) -> Mapping[str, str]:
        """Nothing is looked up."""
        return OFFLINE

    def answers(self, task: Task) -> list[Answer]:
        """Requests by how they ended; times of the wall clock in s, latencies in ms."""
        result = json.loads((task.folder / _RESULT).read_text())
        requests = result["benchmarks"][0]["requests"]
        return [
            _answer(row, success=kind == "successful")
            for kind in ("successful", "errored", "incomplete")
            for row in requests.get(kind) or []
        ]


def _answer(row: dict[str, Any], *, success: bool) -> Answer:
    started = row.get("request_start_time")
    ttft, gap = row.get("time_to_first_token_ms"), row.get("inter_token_latency_ms")
    return Answer(
        success=success,
        started=None if started is None else monotonic(started),
        ttft=None if ttft is None else ttft / 1e3,
        mean_gap=None if gap is None else gap / 1e3,
    )


def _pairs(fields: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in fields.items())
