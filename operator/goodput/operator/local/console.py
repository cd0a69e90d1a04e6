"""What a person sees while a sweep runs: a progress bar with the time left, or plain lines."""

from __future__ import annotations

import time
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from goodput.operator.local.narrate import events
from goodput.operator.observed import Observed
from goodput.operator.plan import Plan
from goodput.operator.status import step_name
from goodput.operator.sweep import Sweep

SYNTHETIC = "SYNTHETIC"
BAR_WIDTH = 20


class View(Protocol):
    """One way to show it."""

    def line(self, text: str) -> None:
        """Something happened."""

    def show(self, sweep: Sweep, observed: Observed, planned: Plan) -> None:
        """How it stands."""

    def close(self) -> None:
        """Nothing more will come."""


class Teller:
    """The driver's watcher: tells what happened since the last look."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._last: Observed | None = None

    def head(self, sweep: Sweep) -> None:
        """What is about to be done."""
        mark = f"{SYNTHETIC} results from a simulated engine · " if sweep.evidence == "synthetic" else ""
        starts = len(sweep.sequence())
        kind = "server starts" if any(config.command for config in sweep.configs) else "trials"
        self._view.line(
            f"{mark}{sweep.name}: {len(sweep.configs)} configs × {len(sweep.loads)} loads × {len(sweep.blocks)} blocks"
            f" = {sweep.planned_cells} cells, {starts} {kind}, about {span(sweep.estimate_seconds)}"
        )
        self._view.line(f"results: {sweep.results_uri}")
        for warning in sweep.warnings:
            self._view.line(f"warning: {warning}")

    def recovered(self, processes: int) -> None:
        """An earlier driver left processes."""
        if processes:
            self._view.line(f"ended {processes} processes that an earlier run had left")

    def looked(self, sweep: Sweep, observed: Observed, planned: Plan) -> None:
        """One pass."""
        if self._last is None:
            done = planned.status.get("progress")
            if observed.trials:
                self._view.line(f"going on from an earlier run: {done} cells are settled")
        else:
            for text in events(sweep, self._last, observed):
                self._view.line(text)
        self._last = observed
        self._view.show(sweep, observed, planned)

    def stopping(self) -> None:
        """Ctrl-C."""
        self._view.line("stopping: what is measured stays; once more to stop at once")


class Lines:
    """Plain text, one line per event, with the seconds since the start."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun = time.monotonic()
        self._progress = ""

    def line(self, text: str) -> None:
        """Print it."""
        self._console.print(
            f"[{time.monotonic() - self._begun:7.1f}s] {text}", markup=False, highlight=False, soft_wrap=True
        )

    def show(self, sweep: Sweep, observed: Observed, planned: Plan) -> None:
        """A line when a cell was settled."""
        del sweep, observed
        progress = str(planned.status.get("progress"))
        if progress != self._progress and planned.remaining_seconds is not None:
            if self._progress:
                self.line(f"{progress} cells, about {span(planned.remaining_seconds)} left")
            self._progress = progress

    def close(self) -> None:
        """Nothing is left to do."""


class Bar:
    """A bar that stays at the bottom, events above it."""

    def __init__(self, console: Console, sweep: Sweep) -> None:
        mark = f"[bold yellow]{SYNTHETIC}[/] " if sweep.evidence == "synthetic" else ""
        self._progress = Progress(
            TextColumn(f"{mark}{sweep.name}"),
            BarColumn(BAR_WIDTH),
            TextColumn("{task.fields[cells]} cells · {task.fields[left]}"),
            TextColumn("{task.fields[now]}", markup=False),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task: TaskID = self._progress.add_task("", total=1.0, cells="", left="", now="")
        self._begun = time.monotonic()
        self._progress.start()

    def line(self, text: str) -> None:
        """Print it above the bar."""
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, sweep: Sweep, observed: Observed, planned: Plan) -> None:
        """Move the bar: by time, so that it moves evenly."""
        left = planned.remaining_seconds
        spent = time.monotonic() - self._begun
        share = 1.0 if left is None else spent / max(0.001, spent + left)
        self._progress.update(
            self._task,
            completed=share,
            cells=str(planned.status.get("progress")),
            left="" if left is None else f"{span(left)} left",
            now=_doing(sweep, observed, planned),
        )
        self._progress.refresh()

    def close(self) -> None:
        """Take the bar away."""
        self._progress.stop()


def _doing(sweep: Sweep, observed: Observed, planned: Plan) -> str:
    """What the latest trial is doing; its config is in the line above the bar."""
    live = [trial for trial in observed.trials.values() if trial.memory.ended is None]
    if not live:
        return str(planned.status.get("phase", "")).lower()
    trial = max(live, key=lambda item: item.memory.order)
    status = trial.runner.status if trial.runner is not None else None
    label = next((step.load.label for step in sweep.loads if status and step.load.id == status.load), "")
    return " ".join(filter(None, (step_name(trial), label)))


def span(seconds: float) -> str:
    """A time as a person says it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
