"""Before the first cell: is it the right server, is it ours alone, is it warm. Remembered over a restart."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from goodput.analysis.schema.provenance import DatasetFacts, Provenance
from goodput.runner.cell import Bench
from goodput.runner.contract import OutputCheck, TrialPlan
from goodput.runner.dataset.load import load_dataset
from goodput.runner.errors import (
    PlanError,
    RequestRefusedError,
    RunnerLostError,
    ServerGoneError,
    ServerRestartedError,
)
from goodput.runner.load.ceiling import measure_ceiling
from goodput.runner.load.errors import LoadError, TargetError
from goodput.runner.load.prompts import PromptSource
from goodput.runner.load.target import Target
from goodput.runner.modellength import length_warnings, with_room
from goodput.runner.outputs import continuations
from goodput.runner.server import Server
from goodput.runner.snapshot import read
from goodput.runner.spool import Memory, TrialSpool
from goodput.runner.status import Board
from goodput.runner.stop import Stop
from goodput.runner.tokens import vocabulary
from goodput.runner.verify import verify
from goodput.runner.warmup import cap_warnings, warm_up
from goodput.runner.workload import Workloads

CEILING_SECONDS = 0.25
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Surroundings:
    """What a trial has around it."""

    plan: TrialPlan
    server: Server
    spool: TrialSpool
    board: Board
    stop: Stop


def prepare(around: Surroundings, memory: Memory | None, began: float) -> tuple[Bench, Memory]:
    """Verify and warm the server, as far as no earlier runner of this attempt did.

    Raises:
        PlanError: the server's URL cannot be loaded.
        RunnerLostError: the server has served requests that no memory knows of.
        ServerRestartedError: another process than the one that was verified and warmed.
        RunnerError: whatever else makes measuring pointless.
    """
    plan, server, stop = around.plan, around.server, around.stop
    where = _target(plan, server)
    memory = _claim(around, memory, began)
    if memory.provenance is None:
        around.board.update(step="verifying")
        provenance = verify(server, plan)
        warned = length_warnings(plan, provenance.resolved)
        memory = memory.model_copy(update={"provenance": provenance, "ceiling": _ceiling(), "warnings": warned})
        around.spool.remember(memory)
    stop.check()
    words = vocabulary(server, plan)
    dataset = None if plan.dataset is None else load_dataset(plan.dataset, plan.endpoint)
    workloads = Workloads(plan, words, dataset, server)
    workloads.check()
    if dataset is not None:
        memory = _with_dataset(memory, dataset.facts)
        around.spool.remember(memory)
    if memory.warmup is None:
        around.board.update(step="warming")
        prompts = words.prompts(plan.warmup_seed + memory.warmups)
        shapes = with_room(workloads.warmup_shapes(), (memory.provenance or Provenance()).resolved)
        memory = _warm(around, memory, where, prompts, shapes)
    if plan.output_check is not None and memory.outputs is None:
        memory = _with_outputs(around, memory, plan.output_check)
        around.spool.remember(memory)
    bench = Bench(
        plan=plan,
        server=server,
        target=where,
        workloads=workloads,
        board=around.board,
        stop=stop,
        server_start_time=memory.server_start_time,
        ceiling=memory.ceiling,
    )
    return bench, memory


def _ceiling() -> float | None:
    try:
        return measure_ceiling(CEILING_SECONDS)
    except LoadError as error:  # for the record only: used_ratio is measured in every cell
        _log.warning("the load client's ceiling is not known: %s", error)
        return None


def _target(plan: TrialPlan, server: Server) -> Target:
    try:
        facts = plan.server
        return Target.of(facts.url, plan.served_model, plan.endpoint, server.headers, ca_file=facts.ca_file)
    except TargetError as error:
        raise PlanError(str(error)) from error


def _claim(around: Surroundings, memory: Memory | None, began: float) -> Memory:
    """Make sure that the server is fresh (first runner) or the same (later one)."""
    snapshot = read(around.server.metrics)
    if memory is None:
        if snapshot.served and not around.plan.server.external:
            raise RunnerLostError("the server has served requests before, and no spool tells which")
        memory = Memory(began_unix=began, server_start_time=snapshot.start_time)
        around.spool.remember(memory)
        return memory
    known, now = memory.server_start_time, snapshot.start_time
    if known is not None and now is not None and known != now:
        raise ServerRestartedError("the server was restarted while the runner was")
    return memory


def _with_dataset(memory: Memory, facts: DatasetFacts) -> Memory:
    """With the dataset among what was measured on what."""
    known = memory.provenance or Provenance()
    return memory.model_copy(update={"provenance": known.model_copy(update={"dataset": facts})})


def _with_outputs(around: Surroundings, memory: Memory, check: OutputCheck) -> Memory:
    """With the answers to the output check. A server that refuses it or is too slow is measured all the same."""
    try:
        outputs = continuations(around.server, around.plan.endpoint, check, around.stop)
    except (RequestRefusedError, ServerGoneError) as error:
        if isinstance(error, ServerGoneError) and not error.slow:
            raise
        return memory.model_copy(update={"warnings": (*memory.warnings, f"no output check: {error}")})
    return memory.model_copy(update={"outputs": outputs})


def _warm(
    around: Surroundings, memory: Memory, where: Target, prompts: PromptSource, shapes: Sequence[tuple[int, int]]
) -> Memory:
    """Warm up. One that a crash cut short is done again, with other prompts."""
    plan = around.plan
    memory = memory.model_copy(update={"warmups": memory.warmups + 1})
    around.spool.remember(memory)
    warmup = warm_up(where, plan, prompts, shapes, around.stop)
    warnings = (*memory.warnings, *cap_warnings(warmup, plan))
    memory = memory.model_copy(update={"warmup": warmup, "warnings": warnings})
    around.spool.remember(memory)
    _log.info("warm-up: %s requests, steady: %s", warmup.requests, warmup.steady)
    return memory
