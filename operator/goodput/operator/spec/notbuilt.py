"""Values that the CRD knows and whose behaviour is not built yet: refused, never ignored. The one list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from goodput.operator.spec.errors import MISSING, Problem
from goodput.operator.spec.models import SweepSpec

_MESSAGE = "is not built yet"


@dataclass(frozen=True)
class Unbuilt:
    """A field of which any value but null and false is refused, or ``values`` alone.

    Attributes:
        instead: what to write.
    """

    field: str
    instead: str
    read: Callable[[SweepSpec], object]
    values: tuple[str, ...] = ()

    def refuses(self, value: object) -> bool:
        """Whether that value's behaviour is not built."""
        return value in self.values if self.values else value is not None and value is not False


UNBUILT = (
    Unbuilt(
        "spec.model.cache.create",
        "name an existing claim with claimName",
        lambda spec: spec.model.cache and spec.model.cache.create,
    ),
    Unbuilt("spec.workload.search", "list rates in requestRate", lambda spec: spec.workload.search),
    Unbuilt(
        "spec.objective.name",
        "use goodput or outputThroughput",
        lambda spec: spec.objective.name,
        ("capacity", "makespan"),
    ),
    Unbuilt("spec.plan.strategy", "use exhaustive", lambda spec: spec.plan.strategy, ("race",)),
    Unbuilt("spec.budget.gpuHourPrice", "remove it", lambda spec: spec.budget.gpu_hour_price),
    Unbuilt("spec.scheduling.queueName", "remove it", lambda spec: spec.scheduling.queue_name),
    Unbuilt(
        "spec.scheduling.exclusiveNode",
        "set a podAntiAffinity in the podTemplate",
        lambda spec: spec.scheduling.exclusive_node,
    ),
    Unbuilt(
        "spec.retention.keepFailedPods",
        "remove it; logs of failed trials are kept with the results",
        lambda spec: spec.retention.keep_failed_pods,
    ),
)


def unbuilt_problems(spec: SweepSpec) -> Iterator[Problem]:
    """One problem for each value whose behaviour is not built yet."""
    for each in UNBUILT:
        value = each.read(spec)
        if each.refuses(value):
            yield Problem(
                each.field, value if isinstance(value, str | int | float) else MISSING, _MESSAGE, each.instead
            )
