"""One trial in virtual time: verify, warm, measure each load in order. Cells come out one by one, with their end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from goodput.analysis.schema.provenance import Provenance
from goodput.runner.conclude import Made, Seen, judge
from goodput.runner.contract import PlannedLoad, TrialPlan
from goodput.runner.dataset.load import Dataset, load_dataset
from goodput.runner.errors import CacheNotResetError, NotIdleError, ServerMismatchError
from goodput.runner.idle import DEADLINE_SECONDS, GAP_SECONDS
from goodput.runner.load.cell import CellRecords
from goodput.runner.load.errors import LoadError
from goodput.runner.modellength import check_lengths
from goodput.runner.provenance import provenance
from goodput.runner.resolved import mismatches, resolved_config
from goodput.runner.snapshot import Snapshot
from goodput.runner.spool import Closing, Memory, Opening
from goodput.runner.tokens import vocabulary
from goodput.runner.virtual.cell import VirtualCell
from goodput.runner.virtual.engine import NANOSECONDS, Engine, pass_time, sample, snapshot
from goodput.runner.virtual.warmup import warm_up
from goodput.runner.warmup import cap_warnings
from goodput.runner.workload import Workloads


@dataclass(frozen=True)
class Measured:
    """A cell that is ready for the store. ``ended_seconds``: on the engine's clock, drained and idle."""

    planned: PlannedLoad
    made: Made
    ended_seconds: float


def measure(plan: TrialPlan, engine: Engine, *, simulated: str) -> Iterator[Measured]:
    """The cells of a trial, each computed when it is asked for. Its clock stands for the wall clock too.

    Args:
        plan: the trial's.
        engine: just started.
        simulated: what it simulates, for the provenance of every cell.

    Raises:
        RunnerError: what makes measuring pointless; what was measured before stands.
    """
    memory = Memory(began_unix=engine.now_ns / NANOSECONDS, provenance=_verified(plan, engine, simulated))
    words = vocabulary(engine, plan)
    dataset = None if plan.dataset is None else load_dataset(plan.dataset, plan.endpoint)
    workloads = Workloads(plan, words, dataset, engine)
    workloads.check()
    memory = _warmed(plan, engine, _with_dataset(memory, dataset), workloads)
    for planned in plan.loads:
        made = _cell(plan, planned, engine, workloads, memory)
        yield Measured(planned, made, engine.now_ns / NANOSECONDS)


def _verified(plan: TrialPlan, engine: Engine, simulated: str) -> Provenance:
    info = engine.info()
    resolved = resolved_config(info)
    faults = mismatches(plan.server.expects, resolved)
    if faults:
        raise ServerMismatchError("; ".join(faults))
    check_lengths(plan, resolved)
    return provenance(engine.version, info, resolved, plan, ()).model_copy(update={"simulated": simulated})


def _with_dataset(memory: Memory, dataset: Dataset | None) -> Memory:
    if dataset is None or memory.provenance is None:
        return memory
    return memory.model_copy(update={"provenance": memory.provenance.model_copy(update={"dataset": dataset.facts})})


def _warmed(plan: TrialPlan, engine: Engine, memory: Memory, workloads: Workloads) -> Memory:
    warmup = warm_up(engine, plan, workloads.warmup_shapes())
    warnings = (*memory.warnings, *cap_warnings(warmup, plan))
    return memory.model_copy(update={"warmup": warmup, "warnings": warnings})


def _cell(plan: TrialPlan, planned: PlannedLoad, engine: Engine, workloads: Workloads, memory: Memory) -> Made:
    try:
        opening = _ready(engine)
    except (CacheNotResetError, NotIdleError) as error:
        closing = Closing(reason=error.reason, message=str(error))
        return judge(plan, planned, memory, Seen(None, closing), None)
    samples: tuple[Snapshot, ...] = ()
    records: CellRecords | None = None
    try:
        cell = VirtualCell(engine, planned, workloads.of(planned), plan.endpoint)
        records = cell.run()
        samples = tuple(cell.samples)
        closing = _closed(engine)
    except LoadError as error:
        closing = Closing(reason=error.reason, message=str(error))
    return judge(plan, planned, memory, Seen(opening, closing, samples), records)


def _ready(engine: Engine) -> Opening:
    """Nothing running, nothing waiting, an empty prefix cache."""
    _wait_idle(engine)
    if not engine.reset_prefix_cache():
        raise CacheNotResetError("the prefix cache was not reset though nothing runs")
    return Opening(snapshot=_wait_idle(engine))


def _closed(engine: Engine) -> Closing:
    try:
        return Closing(snapshot=_wait_idle(engine))
    except NotIdleError as error:
        return Closing(snapshot=snapshot(engine), reason=error.reason, message=str(error))


def _wait_idle(engine: Engine) -> Snapshot:
    """Two equal samples with nothing running or waiting, as for a real server (`goodput.runner.idle`)."""
    deadline = engine.now_ns + round(DEADLINE_SECONDS * NANOSECONDS)
    before = sample(engine)
    while engine.now_ns < deadline:
        pass_time(engine, GAP_SECONDS)
        now = sample(engine)
        if now.running == 0 and now.waiting == 0 and now.same(before):
            return snapshot(engine)
        before = now
    raise NotIdleError(f"running {before.running:g}, waiting {before.waiting:g} after {DEADLINE_SECONDS:g} s")
