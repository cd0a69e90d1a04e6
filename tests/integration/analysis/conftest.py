"""Builds sweeps' folders as a runner and a driver leave them: documents, Parquet, commits, results."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from goodput.analysis import ids
from goodput.analysis.records import REQUESTS
from goodput.analysis.schema.cell import CellDocument, Client, Counts, LogHistogram, Window
from goodput.analysis.schema.commit import Commit, CommittedFile, Result
from goodput.analysis.schema.planned import CellKey, Config, Load, Slo
from goodput.analysis.schema.provenance import Provenance, Start
from goodput.analysis.schema.server import ServerColumns
from goodput.analysis.schema.sweep import SpecDocument, StatesDocument, TrialState
from goodput.analysis.store import Store, open_store

LEAD_IN, TAIL = 2.0, 3.0
WINDOW = 20.0


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Model:
    """Latencies of the toy server: TTFT falls and TPOT rises with the token budget; past capacity TTFT grows."""

    ttft: float = 0.1
    tpot: float = 0.01
    capacity: float = 1e9
    spread: float = 0.1
    refused: float = 0.0  # share of the requests


@dataclass
class SweepBuilder:
    """A sweep over max_num_batched_tokens on one engine; `cell` adds one attempt at a cell."""

    store: Store
    budgets: Sequence[int] = (512, 2048, 8192)
    rates: Sequence[float] = (2.0, 4.0)
    blocks: Sequence[str] = ("0", "1", "2")
    sentinels: Sequence[str] = ()
    evidence: str = "synthetic"
    slo: Slo = field(default_factory=lambda: Slo(ttft=0.5, tpot=0.02))
    gpus: int = 1
    spec_over: dict[str, Any] = field(default_factory=dict)
    arrival: str = "poisson"
    engine: str = "sim"
    window: float = WINDOW

    @property
    def configs(self) -> list[Config]:
        return [
            Config(
                engine=self.engine,
                kind="simulated",
                flags={"max_model_len": "8192", "max_num_batched_tokens": str(budget)},
                swept={"max_num_batched_tokens": str(budget)},
                gpus=self.gpus,
                command=("goodput-engine-simulated", "--max-num-batched-tokens", str(budget)),
            )
            for budget in self.budgets
        ]

    @property
    def loads(self) -> list[Load]:
        axis = "concurrency" if self.arrival == "closed" else "request_rate"
        return [
            Load.model_validate(
                {
                    "prompt_tokens": 2048,
                    "output_tokens": 64,
                    "arrival": self.arrival,
                    axis: int(rate) if self.arrival == "closed" else rate,
                    "window_seconds": self.window,
                }
            )
            for rate in self.rates
        ]

    def spec(self) -> SpecDocument:
        return SpecDocument.model_validate(
            {
                "namespace": "default",
                "name": "toy",
                "uid": "0123456789",
                "folder": "default.toy.01234567",
                "evidence": self.evidence,
                "spec": {},
                "model": "toy/model",
                "configs": self.configs,
                "loads": self.loads,
                "blocks": tuple(self.blocks),
                "sentinels": tuple(self.sentinels),
                "reference": self.configs[0].id,
                "slo": self.slo,
            }
            | self.spec_over
        )

    def write_spec(self) -> None:
        self.store.create("spec.json", self.spec().to_json())

    def cell(self, config: Config, load: Load, block: str, model: Model | None = None, /, **over: Any) -> CellKey:
        """Commit one attempt. ``over``: fields of cell.json; ``claim=False`` leaves the result unclaimed."""
        claim, attempt = over.pop("claim", True), over.pop("attempt", 1)
        key = CellKey(config=config.id, load=load.id, block=block)
        table = requests(load, block, model or Model(), self.window)
        document = self._document(key, table, {"attempt": attempt, "config": config, "load": load} | over)
        files = {
            "requests.parquet": _parquet(table),
            "server.parquet": _parquet(pa.table({"t_s": [0.0]})),
            "cell.json": document.to_json(),
            "vllm_bench.json": b"{}",
        }
        folder = key.attempt_prefix(attempt)
        for name, data in files.items():
            self.store.put(f"{folder}/{name}", data)
        commit = Commit(
            key=key,
            attempt=attempt,
            outcome=document.outcome,
            reason=document.reason,
            files={
                name: CommittedFile(
                    sha256=sha256(data), size=len(data), rows=table.num_rows if name == "requests.parquet" else None
                )
                for name, data in files.items()
            },
        ).to_json()
        self.store.create(f"{folder}/_COMMIT.json", commit)
        if claim and document.outcome == "valid":
            result = Result(key=key, attempt=attempt, commit_sha256=sha256(commit))
            self.store.create(f"{key.prefix}/_RESULT.json", result.to_json())
        return key

    def fill(self, model: Callable[[Config, Load, str], Model]) -> None:
        """Spec and every planned cell."""
        self.write_spec()
        for config in self.configs:
            for load in self.loads:
                sentinels = self.sentinels if config.id == self.configs[0].id else ()
                for block in (*self.blocks, *sentinels):
                    self.cell(config, load, block, model(config, load, block))

    def states(self, generation: int = 1, **over: Any) -> StatesDocument:
        trials = [
            TrialState(config=config.id, block=block, attempt=1, gpu_seconds=100.0, start_seconds=10.0, start_order=1)
            for config in self.configs
            for block in self.blocks
        ]
        return StatesDocument(generation=generation, trials=tuple(trials), **over)

    def _document(self, key: CellKey, table: pa.Table, over: dict[str, Any]) -> CellDocument:
        load = over["load"]
        outcomes = table["outcome"].to_pylist()
        inside = sum(table["in_window"].to_pylist())
        base: dict[str, Any] = {
            "evidence": self.evidence,
            "key": key,
            "slo": self.slo,
            "outcome": "valid",
            "load_state": "not_judged" if load.arrival == "closed" else "stable",
            "window": Window(
                started_unix=1_800_000_000.0,
                lead_in_seconds=LEAD_IN,
                opened=LEAD_IN,
                closed=LEAD_IN + self.window,
                ended=LEAD_IN + self.window + TAIL,
                drained=True,
                schedule_sha256="ab" * 32,
                prompts_sha256="cd" * 32,
            ),
            "counts": _counts(table),
            "delivered_requests": inside,
            "delivered_output_tokens": inside * load.output_tokens,
            "delivered_total_tokens": inside * (load.output_tokens + load.prompt_tokens),
            "client": Client(
                processes=1,
                planned=len(outcomes),
                sent=len(outcomes),
                send_lag_p50_seconds=1e-5,
                send_lag_p99_seconds=1e-4,
                cpu_seconds=0.1,
                events=1000,
                reads=1000,
                coalesced_reads=0,
                ceiling_events_per_second=1e5,
                used_ratio=0.01,
                stamp_source="kernel",
                clock_step_seconds=0.0,
                connections_max=10,
            ),
            "server": ServerColumns(
                complete=True,
                samples=20,
                preemptions=3.0,
                prefix_queries=1000.0,
                prefix_hits=0.0,
                kv_usage_mean=0.2,
                kv_usage_max=0.5,
                running_mean=3.0,
                running_max=8.0,
                waiting_mean=0.1,
                waiting_max=2.0,
            ),
            "itl": LogHistogram(counts={-460: 900, -400: 100}),
            "start": Start(order=int(key.block.strip("s")) + 1, seconds=12.0, compile_cache="miss"),
            "provenance": Provenance(engine_version="0.1", model="toy/model", gpu_uuid="GPU-1", node="node-a"),
        }
        return CellDocument.model_validate(base | over)


def requests(load: Load, block: str, model: Model, window: float = WINDOW) -> pa.Table:
    """Arrivals from the block's seed, the same for all configs; latencies from the model."""
    generator = np.random.default_rng(ids.seed(7, block, load.id))
    rate = load.request_rate or float(load.concurrency or 1)
    end = LEAD_IN + window + TAIL
    planned = np.cumsum(generator.exponential(1 / rate, size=int(rate * end * 2) + 50))
    planned = planned[planned < end]
    noise = np.exp(generator.normal(0, model.spread, size=(2, len(planned))))
    ttft = model.ttft * noise[0] + np.maximum(0, planned * (rate / model.capacity - 1))
    tpot = model.tpot * noise[1]
    first = planned + 0.001 + ttft
    assert load.output_tokens is not None
    last = first + tpot * (load.output_tokens - 1)
    n = len(planned)
    columns: dict[str, Any] = {
        "request": np.arange(n),
        "planned_s": planned,
        "sent_s": planned + 0.001,
        "first_s": first,
        "last_s": last,
        "end_s": last,
        "prompt_tokens": np.full(n, load.prompt_tokens),
        "output_tokens": np.full(n, load.output_tokens),
        "token_source": ["continuous_usage"] * n,
        "outcome": ["completed"] * n,
        "reason": [None] * n,
        "in_window": (planned >= LEAD_IN) & (planned < LEAD_IN + window),
        "itl_max_s": tpot * 2,
        "itl_sum_s": tpot * (load.output_tokens - 1),
        "itl_count": np.full(n, load.output_tokens - 1),
        "stamp_source": ["kernel"] * n,
        "coalesced_reads": np.zeros(n, dtype=np.int64),
        "answer_s": [None] * n,
    }
    for index in np.flatnonzero(np.arange(n) % 10 < 10 * model.refused):
        columns["outcome"][index], columns["reason"][index] = "failed", "Http400"
        for name in ("first_s", "last_s", "itl_max_s"):
            columns[name][index] = np.nan
    return pa.table(columns, schema=REQUESTS)


def _counts(table: pa.Table) -> Counts:
    inside = table.filter(table["in_window"])
    reasons = Counter(reason for reason in inside["reason"].to_pylist() if reason is not None)
    failed = sum(reasons.values())
    return Counts(
        attempted=len(inside),
        completed=len(inside) - failed,
        failed=failed,
        incomplete=0,
        not_sent=0,
        reasons=dict(reasons),
    )


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}/results/sweep=default.toy.01234567")


@pytest.fixture
def sweep(store: Store) -> SweepBuilder:
    return SweepBuilder(store)


@pytest.fixture
def toy() -> Callable[..., Model]:
    """The middle budget is best: the small one is slow to the first token, the large one between tokens."""

    def model(config: Config, load: Load, block: str) -> Model:
        budget = int(config.flags["max_num_batched_tokens"])
        return {
            512: Model(ttft=0.2, tpot=0.008, capacity=3.0),
            2048: Model(ttft=0.15, tpot=0.012, capacity=20.0),
        }.get(budget, Model(ttft=0.1, tpot=0.03, capacity=20.0))

    return model
