"""From what a cell left in the spool to the files of its commit. The same after a restart as without one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from goodput.analysis.schema.cell import Asked, CellDocument
from goodput.analysis.schema.commit import Commit, CommittedFile
from goodput.analysis.schema.planned import CellKey
from goodput.analysis.schema.provenance import Provenance, Start
from goodput.analysis.schema.server import GpuColumns, ServerColumns
from goodput.runner.asked import asked_of, lag_seconds, makespan_seconds
from goodput.runner.columns import samples_table, server_columns
from goodput.runner.contract import PlannedLoad, TrialPlan
from goodput.runner.gpu import GpuSample, gpu_columns
from goodput.runner.load.run import CellRecords
from goodput.runner.scrape import INTERVAL_SECONDS, documents, samples
from goodput.runner.snapshot import Snapshot
from goodput.runner.spool import CellSpool, Closing, Memory, Opening
from goodput.runner.summary import Summary, summarize
from goodput.runner.tally import agree, tally
from goodput.runner.validity import Facts, verdict, warnings
from goodput.runner.vllm_bench import vllm_bench
from goodput.runner.warmup import Warmup

RUNNER_FAILED = "RunnerFailed"


@dataclass(frozen=True)
class Concluded:
    """A cell that is ready for the store.

    Attributes:
        document: its ``cell.json``.
        outcomes: all its requests by outcome.
        summary: None where nothing was measured.
    """

    document: CellDocument
    outcomes: dict[str, int]
    summary: Summary | None


@dataclass(frozen=True)
class Seen:
    """What was seen of the server around and during a cell. ``closing`` None: the cell was never finished."""

    opening: Opening | None
    closing: Closing | None
    scraped: tuple[Snapshot, ...] = ()
    gpu: GpuColumns | None = None


@dataclass(frozen=True)
class Made:
    """A cell's files and the commit that lists them."""

    concluded: Concluded
    files: dict[str, bytes]
    commit: Commit


def conclude(
    plan: TrialPlan, planned: PlannedLoad, memory: Memory, cell: CellSpool, records: CellRecords | None
) -> Concluded:
    """Judge a cell and lay its commit ready in the spool.

    Args:
        plan: the trial's.
        planned: the cell's load.
        memory: of the trial: provenance and start.
        cell: its spool; without ``closing.json`` it was never finished: void, RunnerFailed.
        records: the load client's; None where it did not come that far.
    """
    seen = Seen(cell.opening, cell.closing, samples(cell.samples), _gpu(plan, memory, cell, records))
    made = judge(plan, planned, memory, seen, records)
    cell.stage(made.files, made.commit)
    return made.concluded


def judge(plan: TrialPlan, planned: PlannedLoad, memory: Memory, seen: Seen, records: CellRecords | None) -> Made:
    """Judge a cell and make its files."""
    opening, scraped, gpu = seen.opening, seen.scraped, seen.gpu
    closing = seen.closing or Closing(reason=RUNNER_FAILED, message="the runner ended before the cell did")
    server = None
    if opening is not None:
        window = None if records is None else (records.monotonic_opened, records.monotonic_closed)
        server = server_columns(opening.snapshot, closing.snapshot, scraped, window, interval_seconds=INTERVAL_SECONDS)
        server = _compared(server, records).model_copy(update={"prefix_reset": opening.prefix_reset})
    outcomes = {} if records is None else _outcomes(records.requests)
    facts = None if opening is None or records is None else _facts(plan, planned, opening, closing, records)
    asked = Asked() if records is None else asked_of(records, server)
    if facts is not None:
        facts = replace(facts, server=server, samples=scraped, planned_hits=asked.prefix_hit_ratio or 0.0)
    void = _void(closing, facts)
    document = CellDocument(
        evidence=plan.evidence,
        key=CellKey(config=plan.config.id, load=planned.load.id, block=plan.block),
        attempt=plan.attempt,
        config=plan.config,
        load=planned.load,
        slo=plan.slo,
        outcome="valid" if void is None else "void",
        reason=None if void is None else void[0],
        message=None if void is None else void[1],
        warnings=(
            *memory.warnings,
            *(() if opening is None else opening.warnings),
            *(() if gpu is None or gpu.reason is None else (f"NoGpuMetrics: {gpu.reason}",)),
            *warnings(None if records is None else records.counts, server, asked),
        ),
        server=server,
        gpu=gpu,
        asked=asked,
        makespan_seconds=None if records is None else makespan_seconds(planned.load, records),
        outputs=memory.outputs,
        start=start(plan, memory),
        provenance=memory.provenance or Provenance(),
        **_measured(records),
    )
    return _made(document, records, scraped, outcomes)


def start(plan: TrialPlan, memory: Memory) -> Start:
    """The server start that this trial measures on."""
    warmup, log = memory.warmup or Warmup(), plan.server.log
    return Start(
        order=plan.server.order,
        seconds=plan.server.start_seconds,
        compile_cache=log.compile_cache if log is not None else None,
        log=log,
        warmup_seconds=warmup.seconds,
        warmup_requests=warmup.requests,
        warmup_steady=warmup.steady,
    )


def _gpu(plan: TrialPlan, memory: Memory, cell: CellSpool, records: CellRecords | None) -> GpuColumns | None:
    """The GPUs during the window; None where no exporter is named."""
    if plan.server.gpu_metrics_url is None:
        return None
    window = None if records is None else (records.monotonic_opened, records.monotonic_closed)
    known = memory.provenance.gpu_uuid if memory.provenance is not None else None
    uuids = frozenset(known.replace(",", " ").split()) if known else frozenset()
    return gpu_columns(documents(cell.gpu, GpuSample), window, uuids)


def _compared(server: ServerColumns, records: CellRecords | None) -> ServerColumns:
    """With the client's counts beside the server's."""
    if records is None or server.requests_finished is None:
        return server
    client = tally(records.requests)
    agreed = agree(server.requests_finished, client)
    return server.model_copy(update={"requests_client": client, "counts_agree": agreed})


def _facts(plan: TrialPlan, planned: PlannedLoad, opening: Opening, closing: Closing, records: CellRecords) -> Facts:
    return Facts(
        opening=opening.snapshot,
        closing=closing.snapshot,
        client=records.client,
        server=None,
        open_loop=planned.load.open_loop,
        fresh_prompts=not plan.server.external,
        window_opened=records.window_opened,
        prompt_drift=records.prompt_drift_ratio,
        lag_seconds=lag_seconds(planned.load, records),
    )


def _void(closing: Closing, facts: Facts | None) -> tuple[str, str] | None:
    """Why the cell is void: what the runner met comes before what the rules find."""
    if closing.reason is not None:
        return closing.reason, closing.message or ""
    return (RUNNER_FAILED, "the load client left no usable records") if facts is None else verdict(facts)


def _measured(records: CellRecords | None) -> dict[str, Any]:
    if records is None:
        return {"load_state": "not_judged"}
    return {
        "load_state": records.load_state,
        "in_flight_opened": records.in_flight_opened,
        "in_flight_closed": records.in_flight_closed,
        "window": records.window,
        "counts": records.counts,
        "delivered_requests": records.delivered_requests,
        "delivered_output_tokens": records.delivered_output_tokens,
        "delivered_total_tokens": records.delivered_total_tokens,
        "client": records.client,
        "itl": records.itl,
    }


def _made(
    document: CellDocument, records: CellRecords | None, scraped: Sequence[Snapshot], outcomes: dict[str, int]
) -> Made:
    files = {"cell.json": document.to_json()}
    rows: dict[str, int] = {}
    summary = None
    if records is not None:
        table = samples_table(scraped, records.monotonic_opened - records.window.opened)
        summary = summarize(records.requests, document.load, document.slo, records.window.seconds)
        files |= {
            "requests.parquet": _parquet(records.requests),
            "server.parquet": _parquet(table),
            "vllm_bench.json": vllm_bench(document, records.requests, summary),
        }
        rows = {"requests.parquet": records.requests.num_rows, "server.parquet": table.num_rows}
    commit = Commit(
        key=document.key,
        attempt=document.attempt,
        outcome=document.outcome,
        reason=document.reason,
        files={
            name: CommittedFile(sha256=hashlib.sha256(data).hexdigest(), size=len(data), rows=rows.get(name))
            for name, data in files.items()
        },
    )
    return Made(Concluded(document, outcomes, summary), files, commit)


def _outcomes(requests: pa.Table) -> dict[str, int]:
    return dict(Counter(requests["outcome"].to_pylist()))


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())
