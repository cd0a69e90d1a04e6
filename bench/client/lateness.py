"""How late an open loop sends, by the client's own word and by the server's."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench.client.closed import begin, finish
from bench.client.truth import served
from bench.golden.process import golden
from bench.golden.script import Case, Script, Stream
from bench.peers.base import MODEL, PROMPT_TOKENS

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.cell import CellNote
from goodput.runner.load.job import CELL

RATE = 200.0


@dataclass(frozen=True)
class Lateness:
    """p99 in seconds: sent − planned, as recorded; arrival at the server − planned."""

    sent_p99: float
    arrived_p99: float
    requests: int


def lateness(seconds: float, server_cpu: int, *, fifo: bool) -> Lateness:
    """Send at Poisson times for so long."""
    load = Load(
        prompt_tokens=PROMPT_TOKENS,
        output_tokens=20,
        arrival="poisson",
        request_rate=RATE,
        window_seconds=seconds,
    )
    plan = PlannedLoad(load=load, seed=1, lead_in_seconds=0.5, drain_seconds=20)
    script = Script(default=Case("stream", Stream(ttft=0.05, gap=0.05)))
    with tempfile.TemporaryDirectory() as name, golden(script, cpu=server_cpu, fifo=fifo) as server:
        folder = Path(name)
        run = begin(plan, server.url, MODEL, folder)
        finish(run, seconds + 60)
        table = run.collect().requests
        start = CellNote.model_validate_json((folder / CELL).read_bytes()).start_monotonic_ns / 1e9
        arrived = np.array([row.arrived for row in served(server.truth())])
    planned, sent = (
        np.array(table.column(column).to_numpy(zero_copy_only=False)) for column in ("planned_s", "sent_s")
    )
    count = min(len(arrived), len(planned))
    late = np.sort(arrived)[:count] - (start + np.sort(planned)[:count])
    return Lateness(
        sent_p99=float(np.nanquantile(sent - planned, 0.99)),
        arrived_p99=float(np.quantile(late, 0.99)),
        requests=count,
    )
