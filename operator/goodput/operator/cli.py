"""``goodput``: a sweep on this machine, its plan, and its tables again."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Console

from goodput.analysis.errors import AnalysisError
from goodput.analysis.store import StoreError, open_store
from goodput.analysis.uri import existing_uri, uri_of
from goodput.operator import places
from goodput.operator.local import driver, report
from goodput.operator.local.console import SYNTHETIC, Bar, Lines, Teller
from goodput.operator.local.driver import Ending
from goodput.operator.local.errors import LocalError
from goodput.operator.local.layout import Layout
from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.planview import load_file, read_document, render_plan, with_absolute_files
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep

REFUSED = 2
INTERRUPTED = 130  # as a shell reports a program that SIGINT ended

_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
_profile = click.option(
    "--profile", help="Hardware to predict: a profile's name, or a YAML file. Needed for vllm engines."
)


@click.group()
@click.version_option(package_name="goodput")
def main() -> None:
    """Find the LLM serving config with the best goodput."""


@main.command()
@_file
@click.option("--results", help="Where results go, a URI or a folder, in place of spec.results.uri.")
@click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".goodput"),
    show_default=True,
    help="Where the sweep's state is kept, so that running it again goes on.",
)
@click.option("--plain", is_flag=True, help="Plain lines, no progress bar.")
def run(file: Path, results: str | None, state_dir: Path, plain: bool) -> None:
    """Run the sweep in FILE on this machine. Ctrl-C keeps what was measured; the same command goes on."""
    sweep = _accepted(file, results)
    console = Console()
    view = Lines(console) if plain or not console.is_terminal else Bar(console, sweep)
    teller = Teller(view)
    try:
        teller.head(sweep)
        ending = driver.run(sweep, Layout(state_dir.absolute() / sweep.folder), teller)
    except LocalError as error:
        view.close()
        raise click.ClickException(str(error)) from error
    view.close()
    sys.exit(_finish(console, sweep, ending))


@main.command()
@_file
@click.option("--out", help="Where results go, a URI or a folder, in place of spec.results.uri.")
@_profile
def simulate(file: Path, out: str | None, profile: str | None) -> None:
    """Simulate the sweep in FILE in virtual time: records, tables and report as of a run, all of them synthetic."""
    from goodput.operator.virtual.command import simulate as run_virtually  # noqa: PLC0415  # engines, wanted here alone

    console = Console()
    try:
        code = run_virtually(file, out=out, profile=profile, say=lambda text: _say(console, text))
    except SpecError as error:
        _refuse(file, error)
    except StoreError as error:
        raise click.ClickException(f"{error}; --out takes a folder") from error
    except LocalError as error:
        raise click.ClickException(str(error)) from error
    sys.exit(code)


@main.command()
@_file
@click.option(
    "--estimate", is_flag=True, help="Simulate it: wall time, GPU hours, and goodput per cell. A model's, not measured."
)
@_profile
def plan(file: Path, *, estimate: bool, profile: str | None) -> None:
    """Show what would be done: configs, loads, cells, the estimate, every server's command. Starts nothing.

    What only one machine, or only a cluster, refuses is a note, unless the sweep can run nowhere else.
    """
    if profile is not None and not estimate:
        raise click.UsageError("--profile belongs to --estimate")
    try:
        sweep = load_file(file)
        notes = tuple(places.notes(read_document(file), sweep))
    except SpecError as error:
        _refuse(file, error)
    click.echo(render_plan(sweep, notes, simulated=estimate), nl=False)
    if not estimate:
        return
    from goodput.operator.virtual.command import estimate as simulated  # noqa: PLC0415  # engines, wanted here alone

    try:
        click.echo(f"\n{simulated(file, profile=profile)}")
    except SpecError as error:
        _refuse(file, error)


@main.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def analyze(arguments: tuple[str, ...]) -> None:
    """Rebuild tables and report of a sweep from its records: goodput analyze URI [options]."""
    from goodput.analysis.cli import main as analysis  # noqa: PLC0415  # plots and tables are slow to load

    analysis(["analyze", *arguments], prog_name="goodput")


@main.command()
@click.argument("uri")
@click.option("--base", required=True, help="The profile to start at: memory, lengths and first costs come from it.")
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The profile's YAML file.")
@click.option(
    "--hold-out",
    type=click.FloatRange(0, 1),
    default=0.25,
    show_default=True,
    help="Share of the pairs of config and load that the fit does not see.",
)
@click.option("--endpoint", help="Of an S3-compatible store.")
@click.option("--region", help="Of the bucket.")
def calibrate(uri: str, *, base: str, out: Path, hold_out: float, endpoint: str | None, region: str | None) -> None:
    """Fit a profile of the simulated engine to the sweep in URI, and test it on cells that the fit did not see.

    URI may be a folder on this machine.
    """
    if not out.parent.is_dir():
        raise click.UsageError(f"--out {out}: there is no folder {out.parent}")
    from goodput.operator.calibration import command  # noqa: PLC0415  # scipy is slow to load

    try:
        store = open_store(existing_uri(uri), endpoint=endpoint, region=region)
        found = command.run(store, base=base, name=out.stem, hold_out=hold_out)
    except (command.CalibrationError, AnalysisError, StoreError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    out.write_text(command.document(found), encoding="utf-8")
    click.echo(command.report(found, out))


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(metadata.version("goodput"))


def _accepted(file: Path, results: str | None) -> Sweep:
    """The resolved sweep; a refused one ends the program with all that is wrong with it."""
    try:
        return _resolved(file, results)
    except SpecError as error:
        _refuse(file, error)


def _refuse(file: Path, error: SpecError) -> NoReturn:
    for problem in error.problems:
        click.echo(f"{file}: {problem}", err=True)
    sys.exit(REFUSED)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _resolved(file: Path, results: str | None) -> Sweep:
    if results is None:
        sweep = load_file(file)
    else:
        sweep = with_absolute_files(resolve(_with_results(read_document(file), uri_of(results))), Path.cwd())
    everywhere, here = places.problems(sweep)
    if everywhere or here:
        raise SpecError((*everywhere, *here))
    return sweep


def _with_results(document: Mapping[str, Any], uri: str) -> Mapping[str, Any]:
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        return document
    given = spec.get("results")
    return {**document, "spec": {**spec, "results": {**(given if isinstance(given, Mapping) else {}), "uri": uri}}}


def _finish(console: Console, sweep: Sweep, ending: Ending) -> int:
    """The last words, and the exit code."""
    if ending.interrupted:
        progress = ending.status.get("progress")
        again = shlex.join(["goodput", *sys.argv[1:]])
        console.print(f"stopped with {progress} cells settled; go on with: {again}", markup=False, soft_wrap=True)
        return INTERRUPTED
    if ending.status.get("counts", {}).get("measured"):
        console.print(report.final_text(sweep, ending.status), markup=False, highlight=False, soft_wrap=True)
    mark = f"{SYNTHETIC} " if sweep.evidence == "synthetic" else ""
    last = f"{mark}{ending.phase}: {ending.why}; results: {sweep.results_uri}"
    console.print(last, markup=False, highlight=False, soft_wrap=True)
    return 1 if ending.phase in {"Failed", "Cancelled"} else 0
