"""``vllm bench serve`` of vLLM's CPU build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.peers.base import MODEL, OFFLINE, PROMPT_TOKENS, Answer, Task

_RESULT = "result.json"


@dataclass(frozen=True)
class VllmBench:
    """It has no setting for a request's timeout."""

    bin: Path
    name: str = "vllm bench serve"
    version: str = "0.32.0"

    def prepare(self, task: Task) -> list[str]:
        """A closed loop: an endless rate behind a limit on requests under way."""
        options = {
            "backend": "openai",
            "endpoint": "/v1/completions",
            "base-url": task.url,
            "model": MODEL,
            "tokenizer": str(task.tokenizer),
            "dataset-name": "random",
            "random-input-len": str(PROMPT_TOKENS),
            "random-output-len": str(task.output_tokens),
            "num-prompts": str(task.requests),
            "max-concurrency": str(task.concurrency),
            "percentile-metrics": "ttft,tpot,itl,e2el",
            "result-dir": str(task.folder),
            "result-filename": _RESULT,
        }
        flags = ["--ignore-eos", "--save-result", "--save-detailed", "--disable-tqdm"]
        given = [word for name, value in options.items() for word in (f"--{name}", value)]
        return [str(self.bin / "vllm"), "bench", "serve", *given, *flags]

    def environment(self) -> Mapping[str, str]:
        """Nothing is looked up or reported."""
        return {**OFFLINE, "VLLM_NO_USAGE_STATS": "1"}

    def answers(self, task: Task) -> list[Answer]:
        """One list per quantity; times of ``perf_counter``, which is CLOCK_MONOTONIC on Linux."""
        result = json.loads((task.folder / _RESULT).read_text())
        rows = zip(result["start_times"], result["ttfts"], result["itls"], result["errors"], strict=True)
        return [
            Answer(
                success=not error,
                started=started or None,
                ttft=None if error else ttft,
                gaps=None if error else tuple(gaps),
            )
            for started, ttft, gaps, error in rows
        ]
