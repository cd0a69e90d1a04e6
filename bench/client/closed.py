"""A closed loop of equal requests of ours, on the client's core: what several benches measure."""

from __future__ import annotations

from pathlib import Path

from bench.client.meter import CLIENT_CPU

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.prompts import RandomIds
from goodput.runner.load.run import LoadRun, Target

SERVER_CPU = 0


def closed_loop(streams: int, seconds: float, *, prompt_tokens: int, output_tokens: int) -> PlannedLoad:
    """So many streams for so long."""
    load = Load(
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        arrival="closed",
        concurrency=streams,
        window_seconds=seconds,
    )
    return PlannedLoad(load=load, seed=1, lead_in_seconds=0, drain_seconds=30)


def begin(plan: PlannedLoad, url: str, model: str, folder: Path) -> LoadRun:
    """Start the worker; random prompts."""
    target = Target.of(url, model, "completions")
    run = LoadRun(plan, target, RandomIds(range(1000, 30_000), 1), folder, cpus=[CLIENT_CPU])
    run.start()
    return run


def finish(run: LoadRun, seconds: float) -> None:
    """Wait for the cell's end. Raises `SystemExit` where it does not come in that time."""
    if not run.wait(seconds):
        raise SystemExit("the cell does not end")
