"""A trial plan and the documents of one small cell."""

from __future__ import annotations

import pyarrow as pa
import pytest

from goodput.analysis.records import REQUESTS
from goodput.analysis.schema.cell import CellDocument, Counts, LogHistogram, Window
from goodput.analysis.schema.commit import Commit, CommittedFile
from goodput.analysis.schema.planned import CellKey, Config, Load, Slo
from goodput.analysis.schema.provenance import Provenance, Start
from goodput.runner.contract import PlannedLoad, ResultsTarget, ServerFacts, TrialPlan


@pytest.fixture
def plan() -> TrialPlan:
    loads = [
        Load(prompt_tokens=32, output_tokens=4, arrival="poisson", request_rate=rate, window_seconds=2)
        for rate in (2.0, 4.0)
    ]
    return TrialPlan(
        sweep="default.small.00000000",
        evidence="synthetic",
        config=Config(engine="toy", kind="simulated", flags={"max_num_seqs": "8"}, swept={"max_num_seqs": "8"}),
        block="0",
        attempt=2,
        model="toy/model",
        served_model="toy",
        server=ServerFacts(url="http://127.0.0.1:1", order=3, start_seconds=1.5),
        warmup_concurrency=2,
        warmup_seed=5,
        loads=tuple(PlannedLoad(load=load, seed=9, lead_in_seconds=1, drain_seconds=10) for load in loads),
        slo=Slo(ttft=0.5, tpot=0.1),
        results=ResultsTarget(uri="file:///nowhere"),
        deadline_seconds=100,
    )


@pytest.fixture
def key(plan: TrialPlan) -> CellKey:
    return CellKey(config=plan.config.id, load=plan.loads[0].load.id, block="0")


@pytest.fixture
def requests() -> pa.Table:
    """Lead-in, good, slow, failed, never sent."""
    rows = [
        _row(0, 0.5, window=False, first=0.6, last=0.9),
        _row(1, 1.0, first=1.1, last=1.4),
        _row(2, 1.5, first=2.5, last=2.8),
        _row(3, 2.0, outcome="failed", reason="Http500"),
        _row(4, 2.5, outcome="not_sent", reason="Stopped"),
    ]
    return pa.Table.from_pylist(rows, schema=REQUESTS)


def _row(
    number: int,
    planned: float,
    *,
    window: bool = True,
    first: float | None = None,
    last: float | None = None,
    outcome: str = "completed",
    reason: str | None = None,
) -> dict[str, object]:
    done = outcome == "completed"
    return {
        "request": number,
        "planned_s": planned,
        "sent_s": None if outcome == "not_sent" else planned + 0.001,
        "first_s": first,
        "last_s": last,
        "end_s": last if done else planned + 0.01,
        "prompt_tokens": 32,
        "output_tokens": 4 if done else None,
        "token_source": "continuous_usage",
        "outcome": outcome,
        "reason": reason,
        "in_window": window,
        "itl_max_s": 0.1 if done else None,
        "itl_sum_s": 0.3 if done else None,
        "itl_count": 3 if done else None,
        "stamp_source": "kernel",
        "coalesced_reads": 0,
        "answer_s": None,
    }


@pytest.fixture
def cell(plan: TrialPlan, key: CellKey) -> CellDocument:
    return CellDocument(
        evidence="synthetic",
        key=key,
        attempt=plan.attempt,
        config=plan.config,
        load=plan.loads[0].load,
        slo=plan.slo,
        outcome="valid",
        load_state="stable",
        window=Window(
            started_unix=1_800_000_000.0,
            lead_in_seconds=1.0,
            opened=1.0,
            closed=3.0,
            ended=3.5,
            drained=True,
            schedule_sha256="0" * 64,
            prompts_sha256="0" * 64,
        ),
        counts=Counts(attempted=4, completed=2, failed=1, incomplete=0, not_sent=1),
        delivered_requests=2,
        delivered_output_tokens=8,
        delivered_total_tokens=72,
        itl=LogHistogram(zero=0, counts={-232: 6}),
        start=Start(order=3),
        provenance=Provenance(model="toy/model"),
    )


@pytest.fixture
def commit(plan: TrialPlan, key: CellKey) -> Commit:
    return Commit(
        key=key,
        attempt=plan.attempt,
        outcome="valid",
        files={"cell.json": CommittedFile(sha256="0" * 64, size=2)},
    )
