"""The operator's own Prometheus metrics. Labels are bounded: series of a sweep go when it has ended."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from goodput.operator.actions import Action, Note
from goodput.operator.observed import Observed
from goodput.operator.sweep import Sweep

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_STEP_SECONDS: Final = (1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0)
_STATES: Final = ("measured", "void", "failed", "pruned", "notRun", "pending", "lost")
Labels = tuple[str, ...]


class Metrics:
    """Everything that the operator tells of itself. Names begin with ``goodput_``; units are in the names."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._phases: dict[tuple[str, str], str] = {}
        self._series: dict[tuple[str, str], set[Labels]] = {}
        self._event = time.monotonic()
        self._sweeps = Gauge("goodput_sweeps", "Sweeps by phase", ("namespace", "phase"), registry=registry)
        self._cells = Gauge(
            "goodput_sweep_cells",
            "Planned cells of an active sweep",
            ("namespace", "sweep", "state"),
            registry=registry,
        )
        self._trial = Gauge(
            "goodput_trial_info",
            "A live trial of an active sweep, 1",
            ("namespace", "sweep", "config", "config_label", "block", "attempt", "step"),
            registry=registry,
        )
        self._pending = Gauge(
            "goodput_upload_pending",
            "1 while the object store refuses the records of an active sweep",
            ("namespace", "sweep"),
            registry=registry,
        )
        self._ended = Counter(
            "goodput_trials_ended", "Trials that ended, by reason", ("namespace", "reason"), registry=registry
        )
        self._gpu = Counter("goodput_gpu_seconds", "GPU time of servers", ("namespace",), registry=registry)
        self._step = Histogram(
            "goodput_trial_step_seconds",
            "Time that trials took: schedule, pull, start, measure",
            ("step",),
            buckets=_STEP_SECONDS,
            registry=registry,
        )
        self._look = Histogram(
            "goodput_reconcile_duration_seconds", "Time of one look at a sweep", buckets=_SECONDS, registry=registry
        )
        self._looks = Counter("goodput_reconcile", "Looks at sweeps, by outcome", ("outcome",), registry=registry)
        self._actions = Counter(
            "goodput_actions", "Actions carried out, by kind and outcome", ("action", "outcome"), registry=registry
        )
        age = Gauge("goodput_last_event_age_seconds", "Time since the watch said anything", registry=registry)
        age.set_function(lambda: time.monotonic() - self._event)

    def event(self) -> None:
        """The watch said something."""
        self._event = time.monotonic()

    def looked(self, seconds: float, *, failed: bool) -> None:
        """One look at a sweep has ended."""
        self._look.observe(seconds)
        self._looks.labels("error" if failed else "success").inc()

    def acted(self, sweep: Sweep, action: Action, observed: Observed, *, failed: bool) -> None:
        """One action was carried out."""
        self._actions.labels(type(action).__name__, "error" if failed else "success").inc()
        if isinstance(action, Note) and not failed:
            self._noted(sweep, action, observed)

    def phase(self, namespace: str, name: str, phase: str | None) -> None:
        """A sweep's phase, whoever looks after it; None: the sweep is gone."""
        key = (namespace, name)
        before = self._phases.pop(key, None)
        if before is not None:
            self._sweeps.labels(namespace, before).dec()
        if phase is not None:
            self._phases[key] = phase
            self._sweeps.labels(namespace, phase).inc()

    def status(self, sweep: Sweep, status: Mapping[str, Any]) -> None:
        """The status of an active sweep."""
        where = (sweep.namespace, sweep.name)
        counts = status.get("counts") or {}
        for state in _STATES:
            self._cells.labels(*where, state).set(float(counts.get(state, 0)))
        conditions = status.get("conditions") or ()
        refused = any(one["type"] == "ResultsCommitted" and one["status"] == "False" for one in conditions)
        self._pending.labels(*where).set(float(refused))
        self._show_trials(sweep, where, status.get("current") or ())

    def forget(self, namespace: str, name: str) -> None:
        """A sweep is not active any more: its own series go."""
        for state in _STATES:
            self._cells.remove(namespace, name, state)
        self._pending.remove(namespace, name)
        for labels in self._series.pop((namespace, name), set()):
            self._trial.remove(*labels)

    def _show_trials(self, sweep: Sweep, where: tuple[str, str], current: Any) -> None:
        shown: set[Labels] = set()
        for row in current:
            config = sweep.by_id.get(str(row["config"]))
            label = config.label if config is not None else ""
            shown.add((*where, str(row["config"]), label, str(row["block"]), str(row["attempt"]), str(row["step"])))
        for labels in self._series.get(where, set()) - shown:
            self._trial.remove(*labels)
        for labels in shown:
            self._trial.labels(*labels).set(1)
        self._series[where] = shown

    def _noted(self, sweep: Sweep, note: Note, observed: Observed) -> None:
        trial = observed.trials.get(note.trial)
        if trial is None:
            return
        memory = trial.memory
        if note.ended is not None:
            reason = note.failure.reason if note.failure is not None else "Ended"
            self._ended.labels(sweep.namespace, reason).inc()
            if memory.server_ready is not None:
                self._step.labels("measure").observe(max(0.0, note.ended - memory.server_ready))
        if note.server_ready is not None and trial.server is not None:
            self._started(note.server_ready, trial.server.since, trial.server.scheduled, trial.server.running)
        if note.server_gone is not None and memory.server_running is not None:
            gpus = sweep.by_id[note.trial.config].gpus if note.trial.config in sweep.by_id else 0
            self._gpu.labels(sweep.namespace).inc(max(0.0, note.server_gone - memory.server_running) * gpus)

    def _started(self, ready: float, since: float, scheduled: float | None, running: float | None) -> None:
        for step, begun, ended in (
            ("schedule", since, scheduled),
            ("pull", scheduled, running),
            ("start", running, ready),
        ):
            if begun is not None and ended is not None:
                self._step.labels(step).observe(max(0.0, ended - begun))
