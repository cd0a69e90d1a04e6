"""The runner's own Prometheus metrics. Labels are bounded: one config, the loads of one trial."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from goodput.analysis.schema.cell import CellDocument
from goodput.runner.contract import PlannedLoad, TrialPlan
from goodput.runner.running import LiveLatencies, Requests, Running, SendLags
from goodput.runner.summary import Summary

_CELL = ("config", "load", "evidence")


class LiveMetrics:
    """Registry and metrics of one trial."""

    def __init__(self, plan: TrialPlan) -> None:
        self.registry = CollectorRegistry()
        self._plan = plan
        self._requests, self._lags = Requests(), SendLags()
        self._live = LiveLatencies(plan.config.id, plan.evidence)
        for collector in (self._requests, self._lags, self._live):
            self.registry.register(collector)
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

    def begin(self, planned: PlannedLoad, running: Running) -> None:
        """A cell's load starts; ``running`` is asked at every scrape."""
        plan, load = self._plan, planned.load
        self._requests.begin(running)
        self._lags.begin(running)
        self._live.begin(load.id, running)
        self._info.clear()
        labels = (plan.sweep, plan.config.id, plan.config.label, load.id, load.label, plan.block, str(plan.attempt))
        self._info.labels(*labels, plan.evidence).set(1)

    def freeze(self) -> None:
        """The running cell's numbers are final: it is not asked again."""
        for collector in (self._requests, self._lags, self._live):
            collector.freeze()

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
