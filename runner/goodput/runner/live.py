"""The runner's own Prometheus metrics. Labels are bounded: one config, the loads of one trial."""

from __future__ import annotations

import threading
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from goodput.analysis.schema import CellDocument
from goodput.runner.contract import PlannedLoad, TrialPlan
from goodput.runner.summary import Summary

_CELL = ("config", "load", "evidence")


@dataclass(frozen=True)
class Progress:
    """Requests of the running cell so far."""

    sent: int
    ended: int


class LiveMetrics:
    """Registry and metrics of one trial."""

    def __init__(self, plan: TrialPlan) -> None:
        self.registry = CollectorRegistry()
        self._plan = plan
        self._requests = _Requests()
        self.registry.register(self._requests)
        self._cells = Counter(
            "goodput_runner_cells", "Cells that ended, by outcome", ("outcome",), registry=self.registry
        )
        self.upload_errors = Counter(
            "goodput_runner_upload_errors", "Times the object store refused", registry=self.registry
        )
        self._info = Gauge(
            "goodput_runner_cell_info",
            "The cell that is being measured, 1",
            ("sweep", "config", "config_label", "load", "load_label", "block", "attempt", "evidence"),
            registry=self.registry,
        )
        self._goodput = self._gauge("goodput_requests_per_second", "Good requests per second of the last cell")
        self._attainment = self._gauge("goodput_slo_attainment_ratio", "Good / attempted of the last cell")
        self._offered = self._gauge("goodput_offered_requests_per_second", "Planned arrivals per second")
        self._latencies = {
            name: Gauge(
                f"goodput_{name}_seconds",
                f"{name.upper()} of completed requests of the last cell",
                (*_CELL, "quantile"),
                registry=self.registry,
            )
            for name in ("ttft", "tpot")
        }

    def begin(self, planned: PlannedLoad, progress: Callable[[], Progress]) -> None:
        """A cell's load starts; ``progress`` is asked at every scrape."""
        plan, load = self._plan, planned.load
        self._requests.begin(progress)
        self._info.clear()
        labels = (plan.sweep, plan.config.id, plan.config.label, load.id, load.label, plan.block, str(plan.attempt))
        self._info.labels(*labels, plan.evidence).set(1)

    def freeze(self) -> None:
        """The running cell's counts are final: ``progress`` is not asked again."""
        self._requests.freeze()

    def end(self, cell: CellDocument, outcomes: dict[str, int], summary: Summary | None) -> None:
        """A cell ended; ``outcomes`` counts all its requests."""
        self._requests.finish(outcomes)
        self._info.clear()
        self._cells.labels(cell.outcome).inc()
        if summary is None or cell.outcome != "valid":
            return
        labels = (cell.key.config, cell.key.load, cell.evidence)
        singles = (
            (self._goodput, summary.goodput),
            (self._attainment, summary.attainment),
            (self._offered, summary.offered),
        )
        for gauge, value in singles:
            if value is not None:
                gauge.labels(*labels).set(value)
        for name, quantiles in (("ttft", summary.ttft), ("tpot", summary.tpot)):
            for share, value in quantiles.items():
                self._latencies[name].labels(*labels, f"{share:g}").set(value)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, _CELL, registry=self.registry)


class _Requests(Collector):
    """Counts of requests: those of ended cells plus the running one's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress: Callable[[], Progress] | None = None
        self._sent = 0
        self._outcomes: Tally[str] = Tally(completed=0, failed=0, incomplete=0, not_sent=0)

    def begin(self, progress: Callable[[], Progress]) -> None:
        with self._lock:
            self._progress = progress

    def freeze(self) -> None:
        with self._lock:
            last = self._now()
            self._progress = lambda: Progress(last.sent, last.sent)

    def finish(self, outcomes: dict[str, int]) -> None:
        with self._lock:
            self._progress = None
            self._outcomes.update(outcomes)
            self._sent += sum(count for outcome, count in outcomes.items() if outcome != "not_sent")

    def _now(self) -> Progress:
        return Progress(0, 0) if self._progress is None else self._progress()

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            now, sent, outcomes = self._now(), self._sent, dict(self._outcomes)
        yield GaugeMetricFamily(
            "goodput_runner_requests_in_flight", "Requests sent and not ended", value=now.sent - now.ended
        )
        yield CounterMetricFamily("goodput_runner_requests_sent", "Requests sent to the server", value=sent + now.sent)
        ended = CounterMetricFamily(
            "goodput_runner_requests_ended", "Requests of ended cells, by outcome", labels=("outcome",)
        )
        for outcome, count in sorted(outcomes.items()):
            ended.add_metric((outcome,), count)
        yield ended
