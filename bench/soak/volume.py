"""A million requests: from the spool to the commit, in one process; its CPU and memory."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench.client.closed import SERVER_CPU, begin, closed_loop, finish
from bench.soak.replicate import replicate
from bench.soak.steady import PROMPT_TOKENS, TOKENS

from goodput.analysis.schema.planned import Config, Slo
from goodput.analysis.store import open_store
from goodput.runner.commit import upload
from goodput.runner.conclude import conclude
from goodput.runner.contract import PlannedLoad, ResultsTarget, ServerFacts, TrialPlan
from goodput.runner.load.ceiling import sink
from goodput.runner.load.collect import collect
from goodput.runner.spool import CellSpool, Memory

STREAMS = 500
RECORD_SECONDS = 20.0
TICK_SECONDS = 0.02
RECORDED, CELL, STORE = "recorded", "cell", "store"


@dataclass(frozen=True)
class Volume:
    """What parsing and committing took. Memory: the most that the process had, in MiB."""

    requests: int
    events: int
    parse_seconds: float
    commit_seconds: float
    parse_mib: float
    commit_mib: float


def prepare(folder: Path, requests: int) -> int:
    """Record a cell and replicate it until it holds so many completed requests; returns the spool's bytes."""
    plan = _planned()
    with sink(TICK_SECONDS, SERVER_CPU) as port:
        run = begin(plan, f"http://127.0.0.1:{port}", "sink", folder / RECORDED)
        finish(run, RECORD_SECONDS + 120)
        outcomes = run.collect().requests.column("outcome").to_pylist()
    copies = -(-requests // outcomes.count("completed"))
    load = CellSpool(folder / CELL).load
    replicate(folder / RECORDED, load, copies)
    return sum(path.stat().st_size for path in load.glob("spool-*"))


def measure(folder: Path) -> Volume:
    """Parse and commit what `prepare` left there. Run it in a process of its own: its memory counts."""
    cell = CellSpool(folder / CELL)
    begin = time.process_time()
    records = collect(cell.load)
    parsed, parse_mib = time.process_time(), _peak_mib()
    plan = _trial(folder)
    conclude(plan, plan.loads[0], Memory(began_unix=time.time()), cell, records)
    commit = cell.commit
    if commit is None:
        raise SystemExit("nothing was laid ready")
    upload(open_store(plan.results.uri), cell, commit)
    return Volume(
        requests=records.requests.num_rows,
        events=records.client.events,
        parse_seconds=parsed - begin,
        commit_seconds=time.process_time() - parsed,
        parse_mib=parse_mib,
        commit_mib=_peak_mib(),
    )


def _planned() -> PlannedLoad:
    return closed_loop(STREAMS, RECORD_SECONDS, prompt_tokens=PROMPT_TOKENS, output_tokens=TOKENS)


def _trial(folder: Path) -> TrialPlan:
    """A trial around the cell, as a driver would plan it."""
    return TrialPlan(
        sweep="local.soak",
        evidence="synthetic",
        config=Config(engine="sink", kind="simulated", flags={}),
        block="b00",
        attempt=1,
        model="sink",
        served_model="sink",
        server=ServerFacts(url="http://127.0.0.1:1", order=1),
        warmup_concurrency=1,
        warmup_seed=1,
        loads=(_planned(),),
        slo=Slo(ttft=0.5, tpot=0.05),
        results=ResultsTarget(uri=(folder / STORE).as_uri()),
        deadline_seconds=3600,
    )


def _peak_mib() -> float:
    """Not that of ``getrusage``, which begins with what the parent had when it started this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


if __name__ == "__main__":
    found = measure(Path(sys.argv[1]))
    per_event = found.parse_seconds / found.events * 1e6
    print(
        f"{found.requests:,} requests, {found.events:,} events: parsed in {found.parse_seconds:.1f} s of CPU"
        f" ({per_event:.1f} µs per event, {found.parse_mib:.0f} MiB),"
        f" committed in {found.commit_seconds:.1f} s ({found.commit_mib:.0f} MiB)"
    )
    print(f"{found.parse_seconds + found.commit_seconds:.1f}")
