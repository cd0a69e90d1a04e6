"""Which configs a failure rules out: itself, those with the same image, those that need more memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from goodput.analysis.schema.planned import Config
from goodput.operator import reasons
from goodput.operator.observed import Failure
from goodput.operator.plan.attempts import Pair
from goodput.operator.sweep import Sweep

# DESIGN §9: with all other flags equal, a step this way needs at least as much memory. +1: larger, -1: smaller.
MORE_MEMORY: Mapping[str, Mapping[str, int]] = {
    "oom": {"max_num_batched_tokens": 1, "max_num_seqs": 1, "max_model_len": 1, "gpu_memory_utilization": 1},
    "kv": {"max_num_batched_tokens": 1, "max_model_len": 1, "gpu_memory_utilization": -1},
}


def failed_configs(sweep: Sweep, pairs: Iterable[Pair]) -> dict[str, Failure]:
    """Configs that fail for the whole sweep: a deterministic failure, or an image that cannot be pulled."""
    failed: dict[str, Failure] = {}
    images: dict[str, Failure] = {}
    for pair in pairs:
        failure = pair.deterministic
        if failure is None:
            continue
        failed.setdefault(pair.config, failure)
        if failure.reason == "ImagePullFailed":
            images.setdefault(_image(sweep, pair.config), failure)
    for config in sweep.by_id if images else ():
        if _image(sweep, config) in images:
            failed.setdefault(config, images[_image(sweep, config)])
    return failed


def pruned_configs(sweep: Sweep, failed: Mapping[str, Failure], measured: frozenset[str]) -> dict[str, str]:
    """Configs that need at least the memory of one that had too little: config → the one that failed.

    A config that has been measured does have enough memory, whatever another one met, and is not pruned.
    """
    pruned: dict[str, str] = {}
    for culprit, failure in failed.items():
        reason = reasons.REASONS.get(failure.reason)
        if reason is None or reason.memory is None:
            continue
        for name, config in sweep.by_id.items():
            if name in failed or name in measured or name in pruned:
                continue
            if needs_more(config, sweep.by_id[culprit], MORE_MEMORY[reason.memory]):
                pruned[name] = culprit
    return pruned


def needs_more(config: Config, than: Config, directions: Mapping[str, int]) -> bool:
    """``config`` differs from ``than`` only in flags that cost memory, and only towards more of it."""
    if config.engine != than.engine or config.flags.keys() != than.flags.keys():
        return False
    different = [name for name, value in config.flags.items() if value != than.flags[name]]
    return bool(different) and all(_more(config, than, name, directions.get(name)) for name in different)


def _more(config: Config, than: Config, name: str, direction: int | None) -> bool:
    if direction is None:
        return False
    try:
        difference = float(config.flags[name]) - float(than.flags[name])
    except ValueError:
        return False  # "auto" and the like cannot be compared
    return difference * direction > 0


def _image(sweep: Sweep, config: str) -> str:
    engine = sweep.engines[sweep.by_id[config].engine]
    return engine.image or f"the default of {engine.kind}"
