"""Values that the CRD knows and whose behaviour is not built yet: refused, never ignored. The one list."""

from __future__ import annotations

from collections.abc import Iterator

from goodput.operator.spec.errors import MISSING, Problem
from goodput.operator.spec.models import SweepSpec

_MESSAGE = "is not built yet"


def unbuilt_problems(spec: SweepSpec) -> Iterator[Problem]:
    """One problem for each value whose behaviour is not built yet."""
    for field, value, refused, instead in _values(spec):
        if refused:
            yield Problem(field, value, _MESSAGE, instead)


def _values(spec: SweepSpec) -> Iterator[tuple[str, object, bool, str]]:
    """(field, value, refused, what to write instead)."""
    work, cache = spec.workload, spec.model.cache
    creates = cache is not None and cache.create is not None
    yield "spec.model.cache.create", MISSING, creates, "name an existing claim with claimName"
    yield "spec.workload.search", MISSING, work.search is not None, "list rates in requestRate"
    objective = spec.objective.name
    unbuilt = objective in ("capacity", "makespan")
    yield "spec.objective.name", objective, unbuilt, "use goodput or outputThroughput"
    yield "spec.plan.strategy", spec.plan.strategy, spec.plan.strategy == "race", "use exhaustive"
    price = spec.budget.gpu_hour_price
    yield "spec.budget.gpuHourPrice", price, price is not None, "remove it"
    queue = spec.scheduling.queue_name
    yield "spec.scheduling.queueName", queue, queue is not None, "remove it"
    exclusive = spec.scheduling.exclusive_node
    yield "spec.scheduling.exclusiveNode", exclusive, exclusive, "set a podAntiAffinity in the podTemplate"
    kept = spec.retention.keep_failed_pods
    yield "spec.retention.keepFailedPods", kept, kept, "remove it; logs of failed trials are kept with the results"
