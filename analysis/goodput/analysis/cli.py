"""``goodput-analysis``: the analysis Job, and analysis by hand."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import click

from goodput.analysis.analyze import changed_slo, run_analysis, tables_folder
from goodput.analysis.errors import AnalysisError
from goodput.analysis.job import read_input, run_job
from goodput.analysis.store import StoreError, open_store
from goodput.analysis.text_table import format_table
from goodput.analysis.uri import existing_uri

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions
    """``500ms``, ``1.5s``, ``2m``; becomes seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s|m|h)", str(value))
        if found is None or float(found[1]) == 0:
            self.fail(f"{value!r} is not a duration above zero such as 500ms or 2s", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


@click.group()
@click.version_option(package_name="goodput")
def main() -> None:
    """Tables, report and verdict of a sweep, from the records in its results folder."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


@main.command()
@click.option("--input", "input_path", type=click.Path(path_type=Path), required=True, help="JSON of the driver.")
@click.option("--logs", type=click.Path(path_type=Path), required=True, help="Folder of mounted log packs.")
@click.option("--message", type=click.Path(path_type=Path), required=True, help="Where the answer is written.")
@click.option("--hold", type=Duration(), default="1h", show_default=True, help="How long a refusing store is retried.")
def job(input_path: Path, logs: Path, message: Path, hold: float) -> None:
    """Run as a Job: upload log packs, analyse, answer. Exit 1 where it could not be done."""
    try:
        answer = run_job(read_input(input_path), logs, hold_seconds=hold)
    except (AnalysisError, StoreError, ValueError) as error:
        message.write_text(f"AnalysisFailed: {' '.join(str(error).split())}"[:1000], encoding="utf-8")
        raise click.ClickException(str(error)) from error
    message.write_text(answer.model_dump_json(), encoding="utf-8")


@main.command()
@click.argument("uri")
@click.option("--endpoint", help="Of an S3-compatible store.")
@click.option("--region", help="Of the bucket.")
@click.option("--slo-ttft", type=Duration(), help="Judge by another SLO; unnamed limits stay as they are.")
@click.option("--slo-tpot", type=Duration())
@click.option("--slo-itl", type=Duration())
@click.option("--slo-e2e", type=Duration())
@click.option("--slo-attainment", type=click.FloatRange(0, 1, min_open=True))
def analyze(uri: str, endpoint: str | None, region: str | None, **limits: float | None) -> None:
    """Rebuild tables and report of the sweep at URI (a folder named sweep=…, s3:// and the like or on this machine).

    Prints the goodput table.
    """
    try:
        store = open_store(existing_uri(uri), endpoint=endpoint, region=region)
        slo = changed_slo(store, **{name.removeprefix("slo_"): value for name, value in limits.items()})
        result = run_analysis(store, slo=slo)
    except (AnalysisError, StoreError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(format_table(result))
    click.echo(f"\nwritten to {store.uri}/{tables_folder(result)}")
