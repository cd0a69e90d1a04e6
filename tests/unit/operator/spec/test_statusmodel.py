from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from goodput.analysis.schema.answer import AnalysisAnswer, Best, TopRow
from goodput.operator.observed import Analysis, Canary, Failure, Memory, Observed, Runner, Server, Trial
from goodput.operator.plan import plan
from goodput.operator.spec.resolve import resolve
from goodput.operator.spec.statusmodel import SweepStatus
from goodput.operator.status import refused
from goodput.operator.sweep import TrialId
from goodput.runner.contract import RunnerStatus

NOW = 1_800_000_000.0
Build = Callable[..., dict[str, Any]]


def checked(status: Mapping[str, object]) -> SweepStatus:
    """The API server prunes what its schema does not know: nothing that is written may be lost there."""
    return SweepStatus.model_validate_json(json.dumps(status))


def test_a_new_sweep(sweep: Build) -> None:
    status = plan(resolve(sweep(), uid="0123456789"), Observed(), NOW).status
    assert checked(status).progress == "0/12"


def test_a_running_sweep_with_a_leader(sweep: Build) -> None:
    resolved = resolve(sweep(), uid="0123456789")
    config, load = resolved.configs[0].id, resolved.loads[0].load.id
    block, first = next(iter(resolved.sequence()))
    answer = AnalysisAnswer(
        generation=1,
        verdict="undecided",
        reason="TooFewBlocks",
        message="m",
        best=Best(config=config, load=load, goodput=1.5, interval=(1.0, 2.0)),
        top=(TopRow(config=config, load=load, goodput=1.5, attainment=0.95, feasible=True),),
    )
    runner = Runner("running", NOW, status=RunnerStatus(step="measuring", load=load, planned=2))
    observed = Observed(
        canary=Canary("succeeded", NOW - 60),
        trials={TrialId(block, first, 1): Trial(Memory(1, NOW - 50), Server("ready", NOW - 40), runner)},
        analyses={1: Analysis("succeeded", NOW - 5, None, answer=answer)},
    )
    found = checked(plan(resolved, observed, NOW).status)
    assert found.best is not None
    assert (found.best.label, found.best.goodput) == ("vllm max_num_batched_tokens=2048", 1.5)
    assert found.current is not None
    assert found.current[0].step == "measuring"


def test_a_refused_sweep() -> None:
    found = checked(refused(3, Failure("SpecRefused", "spec.slo: …"), {}, NOW))
    assert found.phase == "Failed"
