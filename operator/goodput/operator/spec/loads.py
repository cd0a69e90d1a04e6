"""The load axis: from the workload to load points."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from goodput.analysis.schema.base import Arrival
from goodput.analysis.schema.planned import Load
from goodput.operator.spec.models import SweepSpec
from goodput.operator.spec.workload import WorkloadSpec


def load_points(spec: SweepSpec) -> tuple[Load, ...]:
    """All load points, ascending: by prompt length, output length, then rate, concurrency or speed."""
    work = spec.workload
    base = _content(work) | _window(work)
    if work.stages:
        base["stages"] = tuple(stage.to_document() for stage in work.stages)
    return tuple(
        Load.model_validate({**base, **shape, **_amount(work, amount)})
        for shape in _shapes(work)
        for amount in work.amounts
    )


def _shapes(work: WorkloadSpec) -> Iterator[dict[str, object]]:
    if work.dataset != "random":
        yield {}
        return
    for prompt, output in itertools.product(sorted(work.prompt_lengths), sorted(work.output_lengths)):
        yield {"prompt_tokens": prompt, "output_tokens": output}


def _content(work: WorkloadSpec) -> dict[str, object]:
    varied, shared = work.lengths.distribution != "exact", work.shared_prefix
    return {
        "dataset": work.dataset,
        "dataset_uri": work.dataset_uri,
        "length_distribution": work.lengths.distribution if varied else None,
        "length_variation": work.lengths.variation,
        "max_tokens": work.max_tokens,
        "prefix_groups": shared.groups if shared else None,
        "prefix_tokens": shared.tokens if shared else None,
    }


def _window(work: WorkloadSpec) -> dict[str, object]:
    if work.stages:
        return {"window_seconds": sum(stage.duration_seconds for stage in work.stages)}
    window = work.window_or_default
    return {"window_seconds": window.duration_seconds, "window_requests": window.requests}


def _amount(work: WorkloadSpec, amount: float | None) -> dict[str, object]:
    arrival: Arrival = "closed" if work.concurrency else work.arrival or "poisson"
    found: dict[str, object] = {"arrival": arrival, "burstiness": work.burstiness}
    if work.concurrency and amount is not None:
        return found | {"concurrency": int(amount)}
    if work.stages or amount is None:
        return found
    return found | {"speed" if work.speed else "request_rate": float(amount)}
