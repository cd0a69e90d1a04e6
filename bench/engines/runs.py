"""Recorded runs of a real vLLM (LLMServingSim's `bench/examples/*/*/vllm`), and the same run simulated.

Times are as the engine stamps them: a request counts from the moment the engine takes it from its input queue.
"""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goodput.engines.simulated.config import CacheConfig, EngineConfig, SchedulerConfig
from goodput.engines.simulated.core import EngineCore
from goodput.engines.simulated.profile import Profile
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.tokens import DEFAULT_VOCAB_SIZE

Array = NDArray[np.float64]
NS = 1_000_000_000
DEFAULT_UTILIZATION = 0.9  # vLLM 0.19
DEFAULT_BLOCK_SIZE = 16


@dataclass(frozen=True)
class Times:
    """Seconds per request, from the run's first arrival; arrays of one length.

    `tick_s` are moments at which `pending`, the requests that were preempted and not yet admitted again, is known;
    `preemptions` is their whole number, where it is known.
    """

    queued: Array
    first: Array
    last: Array
    output_tokens: Array
    preemptions: int | None
    tick_s: Array
    pending: Array

    @property
    def ttft(self) -> float:
        """Mean."""
        return float((self.first - self.queued).mean())

    @property
    def tpot(self) -> float:
        """Mean over requests."""
        return float(((self.last - self.first) / (self.output_tokens - 1)).mean())

    @property
    def e2e(self) -> float:
        """Mean."""
        return float((self.last - self.queued).mean())

    @property
    def net_preemptions(self) -> int:
        """What can be seen at the ticks: the rises of `pending`, at most the number of preemptions."""
        rises = np.diff(self.pending, prepend=0.0)
        return int(rises[rises > 0].sum())


@dataclass(frozen=True)
class Run:
    """A recorded run: what was asked (arrival seconds, tokens), the engine's flags, and what came of it.

    `most_kv_used` is the largest share of the KV cache in use at a sample, 0 to 1.
    """

    name: str
    arrivals: Array
    prompt_tokens: Sequence[int]
    output_tokens: Sequence[int]
    flags: dict[str, Any]
    cache: dict[str, Any]
    most_kv_used: float
    measured: Times

    def config(self, profile: Profile) -> EngineConfig:
        """The engine as it ran; blocks from the profile's memory where the record has none."""
        budget, seqs = self.flags["max_num_batched_tokens"], self.flags["max_num_seqs"]
        length = self.flags["max_model_len"] or profile.max_model_len
        size = self.cache.get("block_size", DEFAULT_BLOCK_SIZE)
        blocks = self.cache.get("num_gpu_blocks")
        if blocks is None:
            free = profile.memory.kv_bytes(DEFAULT_UTILIZATION, budget)
            blocks = free // (size * profile.memory.kv_bytes_per_token)
        return EngineConfig(
            model=self.flags["model"],
            served_model_name=self.flags["model"],
            scheduler=SchedulerConfig(max_num_batched_tokens=budget, max_num_seqs=seqs, max_model_len=length),
            cache=CacheConfig(block_size=size, num_gpu_blocks=blocks),
            vocab_size=DEFAULT_VOCAB_SIZE,
        )


def read_run(folder: Path) -> Run:
    """The run in `folder` (meta.json, requests.jsonl, timeseries.csv)."""
    meta = json.loads((folder / "meta.json").read_text())
    rows = [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]
    column = {name: np.array([row[name] for row in rows], dtype=float) for name in rows[0] if name != "request_id"}
    # both clocks from the first request: when it arrived, and when the engine took it
    queued, scheduled, first, last = (
        column[name] - column["queued_ts"][0]
        for name in ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")
    )
    with (folder / "timeseries.csv").open() as file:
        samples = np.array(
            [[float(row[name]) for name in ("t", "running", "waiting", "kv_cache_pct")] for row in csv.DictReader(file)]
        )
    tick_s = samples[:, 0] + _clock_offset(samples, queued, last)
    admitted, finished = (np.searchsorted(np.sort(times), tick_s, side="right") for times in (scheduled, last))
    return Run(
        name=f"{folder.parent.parent.name} {folder.parent.name}",
        arrivals=column["arrival_time"] - column["arrival_time"][0],
        prompt_tokens=[int(count) for count in column["input_toks"]],
        output_tokens=[int(count) for count in column["output_toks"]],
        flags=meta["engine_kwargs"],
        cache=meta.get("kv_cache", {}),
        most_kv_used=float(samples[:, 3].max()) / 100,
        measured=Times(queued, first, last, column["output_toks"], None, tick_s, admitted - finished - samples[:, 1]),
    )


def replay(run: Run, profile: Profile) -> Times:
    """The run's requests through the simulated engine, in virtual time."""
    core = EngineCore(run.config(profile), profile)
    rows = zip(run.arrivals, run.prompt_tokens, run.output_tokens, strict=True)
    requests = [
        SimRequest(uid=uid, num_prompt_tokens=prompt, target_output_tokens=output, arrival_ns=round(arrival * NS))
        for uid, (arrival, prompt, output) in enumerate(rows)
    ]
    queued: list[int] = []
    pending: list[int] = []
    ticks_ns = (run.measured.tick_s * NS).tolist()
    now = 0
    while len(queued) < len(requests) or core.has_work:
        if not core.has_work:
            now = max(now, requests[len(queued)].arrival_ns)
        while len(queued) < len(requests) and requests[len(queued)].arrival_ns <= now:
            core.add(requests[len(queued)])
            queued.append(now)
        end_ns = core.begin_step(now)
        if end_ns is None:
            raise RuntimeError("the scheduler is stuck: requests wait and nothing can run")
        while len(pending) < len(ticks_ns) and ticks_ns[len(pending)] < end_ns:
            pending.append(sum(request.num_preemptions > 0 for request in core.scheduler.waiting))
        core.end_step()
        now = end_ns
    pending += [0] * (len(ticks_ns) - len(pending))
    return Times(
        queued=np.array(queued) / NS,
        first=np.array([request.first_token_ns for request in requests]) / NS,
        last=np.array([request.last_token_ns for request in requests]) / NS,
        output_tokens=run.measured.output_tokens,
        preemptions=sum(request.num_preemptions for request in requests),
        tick_s=run.measured.tick_s,
        pending=np.array(pending, dtype=float),
    )


def _clock_offset(samples: Array, queued: Array, last: Array) -> float:
    """Seconds to add to the samples' clock so that running + waiting is queued - finished as far as possible."""

    def misfit(offset: float) -> float:
        at = samples[:, 0] + offset
        inside = np.searchsorted(queued, at, side="right") - np.searchsorted(np.sort(last), at, side="right")
        return float(np.abs(inside - samples[:, 1] - samples[:, 2]).sum())

    return float(min(np.arange(-3.0, 3.0, 0.05), key=misfit))
