"""`goodput` with stand-ins for server, runner, canary and analysis: the driver is real, its children are quick.

The runner's stand-in keeps the truth as the real one does: a file per result, created once, beside a log of all
measurements. Behaviour is chosen by ``STUB_*`` variables.
"""

from __future__ import annotations

import sys
from pathlib import Path

from goodput.operator import cli
from goodput.operator.local import commands, report
from goodput.operator.local.layout import TaskFolder, TrialFolder
from goodput.operator.sweep import Sweep, TrialId
from goodput.runner.contract import TrialPlan

CHILD = Path(__file__).with_name("stub_child.py")


def _child(*words: object) -> tuple[str, ...]:
    return (sys.executable, str(CHILD), *map(str, words))


def server(sweep: Sweep, trial: TrialId, port: int) -> tuple[str, ...]:
    return _child("server", port, sweep.by_id[trial.config].label)


def runner(folder: TrialFolder, port: int) -> tuple[str, ...]:
    del port
    plan = TrialPlan.model_validate_json(folder.plan.read_bytes())
    loads = [planned.load.id for planned in plan.loads]
    return _child("runner", folder.outcome, plan.block, plan.attempt, plan.config.id, *loads)


def canary(folder: TaskFolder) -> tuple[str, ...]:
    return _child("canary", folder.message)


def analysis(folder: TaskFolder, packs: Path) -> tuple[str, ...]:
    return _child("analysis", folder.input, folder.message, packs)


if __name__ == "__main__":
    commands.server = server
    commands.runner = runner
    commands.canary = canary
    commands.analysis = analysis
    report.final_text = lambda sweep, status: f"{sweep.name}: {status['phase']}"  # there are no records
    cli.main()
