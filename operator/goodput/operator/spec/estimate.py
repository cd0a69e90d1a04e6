"""How long a sweep will take, and what it may cost: what a plan shows before anything starts."""

from __future__ import annotations

from dataclasses import dataclass

from goodput.analysis.schema.planned import Config
from goodput.operator.spec.models import EngineSpec, SweepSpec
from goodput.operator.sweep import LoadStep

SENTINEL_ABOVE_SECONDS = 2 * 3600.0
#: Start until Ready, by kind of engine: vLLM with a cached model and without a compile cache; a process.
START_SECONDS = {"vllm": 120.0, "transformers": 60.0, "simulated": 3.0, "external": 0.0}
#: A warm-up that becomes steady ends before its cap.
WARMUP_SECONDS = 30.0


@dataclass(frozen=True)
class Estimate:
    """Expected size of a sweep: server starts, cells, seconds of wall time, GPU hours."""

    trials: int
    cells: int
    seconds: float
    gpu_hours: float


def trial_seconds(spec: SweepSpec, engine: EngineSpec, steps: tuple[LoadStep, ...]) -> float:
    """Expected seconds of one trial: start, warm-up, all loads."""
    warmup = min(spec.workload.warmup.max_seconds, WARMUP_SECONDS)
    return START_SECONDS[engine.kind] + warmup + sum(step.seconds for step in steps)


def least_trial_seconds(steps: tuple[LoadStep, ...]) -> float:
    """What no trial can be shorter than: lead-ins, and windows whose length is planned."""
    return sum(step.seconds if step.planned else step.lead_in_seconds for step in steps)


def estimate(
    spec: SweepSpec,
    configs: tuple[Config, ...],
    steps: tuple[LoadStep, ...],
    *,
    sentinels: int = 0,
    primes: tuple[str, ...] = (),
) -> Estimate:
    """Expected size; the reference (the first config) stands for the sentinels' trials. ``primes``: config ids."""
    engines = {engine.name: engine for engine in spec.engines}
    blocks = spec.plan.blocks.min
    runs = [(config, blocks) for config in configs] + [(configs[0], sentinels)]
    seconds = [(trial_seconds(spec, engines[config.engine], steps), config.gpus, n) for config, n in runs]
    trials = sum(n for _, _, n in seconds)
    seconds += [(START_SECONDS[each.kind], each.gpus, 1) for each in configs if each.id in primes]
    servers = min(spec.plan.parallelism, len(configs))
    return Estimate(
        trials=trials + len(primes),
        cells=trials * len(steps),
        seconds=sum(s * n for s, _, n in seconds) / servers,
        gpu_hours=sum(s * n * gpus for s, gpus, n in seconds) / 3600,
    )
