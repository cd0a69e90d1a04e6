"""What `goodput simulate` does: a sweep's file in, its records, tables and report out, in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from goodput.analysis.store import SCHEMES, open_store
from goodput.analysis.text_table import aligned
from goodput.analysis.uri import file_path, uri_of
from goodput.operator.local import report
from goodput.operator.local.console import SYNTHETIC, span
from goodput.operator.local.driver import Ending
from goodput.operator.local.lock import locked_folder
from goodput.operator.observed import Observed
from goodput.operator.plan import Plan
from goodput.operator.spec.errors import Problem, SpecError
from goodput.operator.spec.planview import read_document, with_absolute_files
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep
from goodput.operator.virtual import driver
from goodput.operator.virtual.engines import Simulator, simulator
from goodput.operator.virtual.estimate import estimate as forecast
from goodput.operator.virtual.estimate import rows, warnings
from goodput.operator.virtual.results import Results
from goodput.operator.virtual.sweep import virtual
from goodput.operator.virtual.world import BEGIN_SECONDS, VirtualWorld

Say = Callable[[str], None]
HEADER = ("config", "load", "goodput/s", "attained", "TTFT p50 / p99 ms", "TPOT p50 / p99 ms", "state")


def prepare(file: Path, profile: str | None) -> tuple[Sweep, Simulator]:
    """The sweep of a file as it is simulated, and what simulates it.

    ``results`` stay as they are written, so that no record tells where it lies.

    Raises:
        SpecError: with all problems that were found.
    """
    given = resolve(read_document(file))
    placed = with_absolute_files(given, Path.cwd()).spec
    sweep = replace(given, spec=placed.model_copy(update={"results": given.spec.results}))
    made = simulator(sweep, profile)
    return virtual(sweep, made.names), made


def simulate(file: Path, *, out: str | None, profile: str | None, say: Say) -> int:
    """Simulate the sweep of a file; returns the exit code.

    Args:
        file: the sweep.
        out: where results go, in place of ``spec.results.uri``; a URI or a folder.
        profile: hardware to predict, in place of the profiles that the spec names.
        say: shows a line.

    Raises:
        SpecError: it is refused, or cannot be simulated.
        StoreError: the store refuses.
        BusyError: another simulation writes to the same folder.
    """
    sweep, made = prepare(file, profile)
    if sweep.spec.suspend:
        raise SpecError((Problem("spec.suspend", True, "a suspended sweep does nothing", "write false"),))
    shown = _placed(sweep, out)
    for line in _head(sweep, made):
        say(line)
    begun = time.monotonic()
    results = shown.spec.results
    store = open_store(shown.results_uri, endpoint=results.endpoint, region=results.region)
    world = VirtualWorld(sweep, made, Results(store))
    with _alone(shown.results_uri):
        ending = driver.run(world, _Progress(sweep, say))
        status: Mapping[str, Any] = ending.status
        if status["counts"]["measured"]:
            say(report.final_text(shown, status))
    why = Ending(status, interrupted=False).why
    say(
        f"{SYNTHETIC} {status['phase']}: {why}; {span(world.now - BEGIN_SECONDS)} of virtual time in "
        f"{span(time.monotonic() - begun)}; results: {shown.results_uri}"
    )
    return 1 if status["phase"] in {"Failed", "Cancelled"} else 0


def estimate(file: Path, *, profile: str | None) -> str:
    """What the simulator expects of a sweep, as text.

    Raises:
        SpecError: it is refused, or cannot be simulated.
    """
    sweep, made = prepare(file, profile)
    found = forecast(sweep, made)
    lines = [f"{SYNTHETIC} estimate of a model in virtual time, nothing was measured"]
    lines += [f"  {line}" for line in _grounds(made)]
    lines.append(
        f"  wall time {span(found.wall_seconds)} with parallelism {sweep.spec.plan.parallelism}, "
        f"{found.gpu_hours:.2g} GPU hours: {found.starts} starts {span(found.starts_seconds)}, "
        f"warm-ups, cells and drains {span(found.trials_seconds)}"
    )
    if len(sweep.blocks) > 1:
        lines.append(f"  one block was simulated and counted {len(sweep.blocks)} times")
    lines += ["", *aligned([HEADER, *rows(found)])]
    lines += [f"warning: {text}" for text in warnings(found)]
    return "\n".join(lines)


def _alone(uri: str) -> AbstractContextManager[None]:
    """One simulation at a time empties and fills a folder; in an object store nobody looks."""
    folder = file_path(uri)
    return nullcontext() if folder is None else locked_folder(folder)


class _Progress:
    """A line for each trial that has ended."""

    def __init__(self, sweep: Sweep, say: Say) -> None:
        self._sweep, self._say = sweep, say
        self._told = 0

    def __call__(self, observed: Observed, planned: Plan, now: float) -> None:
        ended = sum(trial.memory.ended is not None for trial in observed.trials.values())
        if ended > self._told:
            self._told = ended
            self._say(
                f"{ended} trials, {planned.status['progress']} cells, {span(now - BEGIN_SECONDS)} of virtual time"
            )


def _head(sweep: Sweep, made: Simulator) -> list[str]:
    size = (
        f"{len(sweep.configs)} configs × {len(sweep.loads)} loads × {len(sweep.blocks)} blocks = "
        f"{sweep.planned_cells} cells"
    )
    return [f"{SYNTHETIC} virtual time, nothing is run or measured · {sweep.name}: {size}", *_grounds(made)]


def _grounds(made: Simulator) -> list[str]:
    """What the numbers rest on."""
    lines = []
    for engine, profile in made.profiles.items():
        on = f"{profile.device}, {profile.model}" if profile.model is not None else profile.device
        lines.append(f"{engine}: step times of profile {profile.name} ({on}): {profile.source}")
        lines += [f"WARNING: {engine}: {text}: these numbers do not predict this sweep" for text in made.unlike(engine)]
        ignored = made.unmodelled[engine]
        if ignored:
            lines.append(f"{engine}: predicted as if these flags changed nothing: {', '.join(ignored)}")
    return lines


def _placed(sweep: Sweep, out: str | None) -> Sweep:
    """The sweep with the place where its results really go.

    Raises:
        SpecError: there is no such kind of place.
    """
    uri = sweep.spec.results.uri if out is None else uri_of(out)
    scheme, _, place = uri.partition("://")
    if scheme not in SCHEMES or not place:
        fix = f"name a folder, or begin it with one of {', '.join(f'{each}://' for each in SCHEMES)}"
        raise SpecError((Problem("--out", uri, "names no place of a known scheme", fix),))
    results = sweep.spec.results.model_copy(update={"uri": uri})
    named = replace(sweep, spec=sweep.spec.model_copy(update={"results": results}))
    return with_absolute_files(named, Path.cwd())
