"""What `goodput plan` does: reads a sweep's file, and writes the plan as text. No cluster is needed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from goodput.analysis import ids
from goodput.analysis.schema.base import PRIME
from goodput.analysis.schema.planned import Load
from goodput.analysis.uri import file_path
from goodput.operator.spec.errors import MISSING, Problem, SpecError
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep

_FILE = "file://"


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which also refuses a key that is written twice, as kubectl does."""


def _map(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    twice = {key for key in keys if keys.count(key) > 1 and key != "<<"}
    if twice:
        raise yaml.MarkedYAMLError(problem=f"key {min(twice)!r} is written twice", problem_mark=node.start_mark)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _map)


def read_document(path: Path) -> Mapping[str, Any]:
    """The BenchmarkSweep document in a YAML or JSON file.

    Raises:
        SpecError: the file cannot be read, is no YAML, or holds no document or several.
    """
    try:
        documents = [found for found in yaml.load_all(path.read_bytes(), _Loader) if found is not None]
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}", "name a file that exists") from error
    except yaml.YAMLError as error:
        raise _refused(path, f"is no YAML: {' '.join(str(error).split())}", "correct it there") from error
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        message = f"holds {len(documents)} documents, not one BenchmarkSweep"
        raise _refused(path, message, "write one BenchmarkSweep per file")
    return documents[0]


def load_file(path: str | Path) -> Sweep:
    """The resolved sweep of a file, for one machine.

    A relative ``file://`` URI (``file://./results``) of results or dataset is relative to the current folder, as a
    path on the command line is; the sweep's identity keeps it as written.

    Raises:
        SpecError: with all problems that were found.
    """
    return with_absolute_files(resolve(read_document(Path(path))), Path.cwd())


def with_absolute_files(sweep: Sweep, folder: Path) -> Sweep:
    """The sweep with relative ``file://`` URIs of results and dataset made absolute against a folder."""
    results, work = sweep.spec.results, sweep.spec.workload
    results = results.model_copy(update={"uri": _absolute(results.uri, folder)})
    if work.dataset_uri is not None:
        work = work.model_copy(update={"dataset_uri": _absolute(work.dataset_uri, folder)})
    return replace(sweep, spec=sweep.spec.model_copy(update={"results": results, "workload": work}))


def _absolute(uri: str, folder: Path) -> str:
    path = file_path(uri)
    return uri if path is None else f"{_FILE}{(folder / path).resolve()}"


def render_plan(sweep: Sweep, notes: Sequence[str] = (), *, simulated: bool = False) -> str:
    """The plan as plain text: size and estimate, notes, configs with their exact command, loads, every cell.

    ``simulated``: an estimate by simulation follows, so that this one is left out.
    """
    sections = (
        (*_summary(sweep, simulated=simulated), *(f"note: {note}" for note in notes)),
        _configs(sweep),
        _loads(sweep),
        _cells(sweep),
    )
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _summary(sweep: Sweep, *, simulated: bool) -> Iterator[str]:
    blocks = len(sweep.blocks)
    starts = "server starts" if any(config.command for config in sweep.configs) else "trials; nothing is started"
    servers = len(sweep.configs) * blocks + len(sweep.sentinels)
    hours = f", {sweep.estimate_gpu_hours:.2g} GPU hours" if sweep.estimate_gpu_hours else ""
    primes = f" after {len(sweep.primes)} that fill the compile cache" if sweep.primes else ""
    sentinel = f" + {len(sweep.sentinels)} sentinel starts" if sweep.sentinel else ""
    store = not sweep.spec.results.uri.startswith(_FILE)
    cluster = f"; in a cluster in sweep=<namespace>.{sweep.name}.<uid>" if store else ""
    yield f"sweep {sweep.name} ({sweep.evidence}), results in {sweep.results_uri}{cluster}"
    yield (
        f"{len(sweep.configs)} configs x {len(sweep.loads)} loads x {blocks} blocks{sentinel} "
        f"= {sweep.planned_cells} cells in {servers} {starts}{primes}"
    )
    if not simulated:
        yield f"estimate: {_span(sweep.estimate_seconds)}{hours} with parallelism {sweep.spec.plan.parallelism}"
    if sweep.output_check:
        yield "output check: every config answers the same prompts at temperature 0, compared with the reference"
    yield from (f"warning: {warning}" for warning in sweep.warnings)


def _configs(sweep: Sweep) -> Iterator[str]:
    yield "configs"
    for config in sweep.configs:
        mark = "  (reference)" if config.id == sweep.reference else ""
        gpus = f"  {config.gpus} GPU" if config.gpus else ""
        yield f"  {config.id}  {config.label}{gpus}{mark}"
        url = sweep.address(config.id)
        yield f"    {shlex.join(config.command)}" if url is None else f"    runs already: {url}"


def _loads(sweep: Sweep) -> Iterator[str]:
    yield "loads"
    for step in sweep.loads:
        load = step.load
        window = f"{load.window_requests} requests" if load.window_requests else f"{load.window_seconds:g} s"
        yield (
            f"  {load.id}  {load.label}  {load.arrival}, window {window}, "
            f"lead-in {step.lead_in_seconds:g} s, drain at most {step.drain_seconds:g} s"
        )
        yield from (f"    {line}" for line in _details(load))


def _details(load: Load) -> Iterator[str]:
    """What the line of a load has no room for."""
    for stage in load.stages or ():
        end = "" if stage.end_rate is None else f", rising or falling evenly to {ids.text(stage.end_rate)}/s"
        yield f"{stage.duration_seconds:g} s at {ids.text(stage.rate)}/s{end}"
    if load.length_distribution:
        yield f"lengths {load.length_distribution}, standard deviation {load.length_variation:g} of the mean"
    if load.dataset_uri:
        yield f"dataset {load.dataset_uri}"
    if load.max_tokens:
        yield f"at most {load.max_tokens} tokens of prompt and output"
    if load.prefix_groups:
        yield f"{load.prefix_groups} groups share their first {load.prefix_tokens} prompt tokens"


def _cells(sweep: Sweep) -> Iterator[str]:
    yield "cells, in the order of their server starts"
    wide = max(len(config.label) for config in sweep.configs)
    for config_id in sweep.primes:
        yield f"  block {PRIME}  {config_id}  {sweep.by_id[config_id].label:<{wide}}  fills the compile cache, no cell"
    for block, config_id in sweep.sequence():
        for step in sweep.loads if block != PRIME else ():
            label = sweep.by_id[config_id].label
            yield f"  block {block:>3}  {config_id}  {label:<{wide}}  {step.load.label:<18}  not_run"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _refused(path: Path, message: str, fix: str) -> SpecError:
    return SpecError((Problem(str(path), MISSING, message, fix),))
