"""From a BenchmarkSweep document to a resolved sweep, or to everything that is wrong with it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from goodput.analysis import ids
from goodput.analysis.schema.planned import Config, Load
from goodput.operator.spec.compilekey import primes
from goodput.operator.spec.engineversion import version_warning
from goodput.operator.spec.errors import MISSING, Problem, SpecError
from goodput.operator.spec.estimate import SENTINEL_ABOVE_SECONDS, estimate, least_trial_seconds
from goodput.operator.spec.flagcheck import flag_problems
from goodput.operator.spec.grid import count, expand, reference_of, too_large
from goodput.operator.spec.loads import load_points
from goodput.operator.spec.models import SweepSpec
from goodput.operator.spec.notbuilt import unbuilt_problems
from goodput.operator.spec.outputaxes import checks_outputs
from goodput.operator.spec.parse import parse_spec
from goodput.operator.spec.podguard import template_problems
from goodput.operator.spec.rules import shape_problems
from goodput.operator.spec.serverrules import gpu_count_problems, server_problems, server_warnings
from goodput.operator.sweep import LoadStep, Sweep
from goodput.runner import expect

LEAD_IN_LEAST_SECONDS = 10.0
LEAD_IN_REQUESTS = 5
UNPLANNED_REQUEST_SECONDS = 2.0
DRAIN_LEAST_SECONDS = 60.0
BURST_LEAST_SECONDS = 600.0
BURST_TIMES = 8.0  # as long as expected, until a burst is given up

#: May change while the sweep exists, so they are not part of a local sweep's identity.
_MUTABLE = ("suspend", "cancel", "budget", "retention")


def resolve(
    document: Mapping[str, Any], *, namespace: str = "local", name: str | None = None, uid: str | None = None
) -> Sweep:
    """The resolved sweep of a whole BenchmarkSweep document.

    With ``uid`` the sweep is a cluster's, and its folder carries the UID. Without, it is one machine's, and its
    folder carries a hash of the immutable spec, so that running it again resumes.

    Raises:
        SpecError: with all problems that were found.
    """
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = name or str(metadata.get("name") or "")
    if not name:
        raise SpecError((Problem("metadata.name", MISSING, "is required", "name the sweep"),))
    spec = parse_spec(document)
    in_cluster = uid is not None
    _refuse((*_before_expansion(name, spec, document, in_cluster=in_cluster), *flag_problems(spec)))
    configs = expand(spec)
    reference = reference_of(spec, configs)
    steps = load_steps(spec)
    loads = tuple(step.load for step in steps)
    _refuse((*server_problems(spec, configs, loads), *_budget_problems(spec, configs, steps)))
    sentinel = spec.plan.sentinel == "on" or (
        spec.plan.sentinel == "auto" and estimate(spec, configs, steps).seconds > SENTINEL_ABOVE_SECONDS
    )
    sentinels = spec.plan.blocks.min + 1 if sentinel else 0
    primed = primes(spec, configs)
    expected = estimate(spec, configs, steps, sentinels=sentinels, primes=primed)
    return Sweep(
        namespace=namespace,
        name=name,
        uid=uid or immutable_hash(spec),
        folder=f"{namespace}.{name}.{uid[:8]}" if uid else f"local.{name}.{immutable_hash(spec)}",
        generation=int(metadata.get("generation", 1)),
        spec=spec,
        evidence="synthetic" if spec.engines[0].kind == "simulated" else "measured",
        configs=configs,
        loads=steps,
        reference=reference.id,
        sentinel=sentinel,
        primes=primed,
        output_check=checks_outputs(spec, configs),
        estimate_seconds=expected.seconds,
        estimate_gpu_hours=expected.gpu_hours,
        warnings=(*filter(None, map(version_warning, spec.engines)), *server_warnings(configs)),
    )


def immutable_hash(spec: SweepSpec) -> str:
    """First eight hex digits of SHA-256 over what cannot change while the sweep exists."""
    fixed = spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=set(_MUTABLE))
    fixed["plan"].pop("parallelism", None)
    fixed["plan"]["blocks"].pop("max", None)
    fixed["results"].pop("credentialsSecretRef", None)
    if spec.plan.output_check == "auto":
        fixed["plan"].pop("outputCheck", None)  # as sweeps were hashed before it was there
    _with_what_it_means(fixed["workload"], spec)
    return hashlib.sha256(ids.canonical(fixed)).hexdigest()[:8]


def _with_what_it_means(workload: dict[str, Any], spec: SweepSpec) -> None:
    """Defaults are written out, and what says nothing is left out: as sweeps were hashed before these fields were."""
    work = spec.workload
    if work.lengths.distribution == "exact":
        workload.pop("lengths", None)
    if work.dataset == "random":
        workload |= {"promptTokens": list(work.prompt_lengths), "outputTokens": list(work.output_lengths)}
    if not work.stages:
        workload["window"] = work.window_or_default.model_dump(mode="json", by_alias=True, exclude_none=True)


def load_steps(spec: SweepSpec) -> tuple[LoadStep, ...]:
    """Load points with lead-in and drain deadline, the same for all configs."""
    loads = load_points(spec)
    longest = longest_request_seconds(spec, loads)
    lead_in = lead_in_seconds(spec, longest)
    return tuple(
        LoadStep(
            load,
            lead_in,
            drain_seconds=_drain_seconds(load, longest),
            window_seconds=expect.window_seconds(load, longest),
        )
        for load in loads
    )


def lead_in_seconds(spec: SweepSpec, longest: float) -> float:
    """Load before the window: as asked, else max(10 s, 5 × the longest planned request), in whole milliseconds."""
    if spec.workload.arrival == "burst":
        return 0.0
    if spec.workload.lead_in_seconds is not None:
        return spec.workload.lead_in_seconds
    return max(LEAD_IN_LEAST_SECONDS, round(LEAD_IN_REQUESTS * longest, 3))


def longest_request_seconds(spec: SweepSpec, loads: tuple[Load, ...]) -> float:
    """What the SLO allows the longest request, else 2 s. Where lengths vary: a long request."""
    slo = spec.slo
    if slo.e2e_seconds is not None:
        return slo.e2e_seconds
    if slo.ttft_seconds is not None and slo.tpot_seconds is not None:
        return slo.ttft_seconds + slo.tpot_seconds * (max(map(expect.long_output_tokens, loads)) - 1)
    return UNPLANNED_REQUEST_SECONDS


def _drain_seconds(load: Load, longest: float) -> float:
    """How long open requests may take after the window: max(60 s, window); a burst much longer than expected."""
    window = expect.window_seconds(load, longest)
    if load.arrival == "burst":
        return max(BURST_LEAST_SECONDS, BURST_TIMES * window)
    return max(DRAIN_LEAST_SECONDS, window)


def _before_expansion(
    name: str, spec: SweepSpec, document: Mapping[str, Any], *, in_cluster: bool
) -> Iterator[Problem]:
    yield from too_large(count(spec))
    for problem in shape_problems(name, spec, in_cluster=in_cluster):
        yield replace(problem, value=_written(document, problem.field)) if problem.value == "0s" else problem
    yield from unbuilt_problems(spec)
    yield from template_problems(spec)
    yield from gpu_count_problems(spec)
    if in_cluster and spec.results.uri.startswith("file://"):
        fix = "name an object store: s3://, gs:// or az://"
        yield Problem("spec.results.uri", spec.results.uri, "pods share no files", fix)


def _budget_problems(spec: SweepSpec, configs: tuple[Config, ...], steps: tuple[LoadStep, ...]) -> Iterator[Problem]:
    least = least_trial_seconds(steps)
    deadline = spec.budget.deadline_seconds
    if deadline is not None and deadline < least:
        yield Problem(
            "spec.budget.deadline",
            f"{deadline:g}s",
            f"is less than one trial needs ({least:.0f} s)",
            "raise it, or measure fewer loads",
        )
    filling = len(primes(spec, configs))
    if spec.budget.max_trials is not None and spec.budget.max_trials <= filling:
        yield Problem(
            "spec.budget.maxTrials",
            spec.budget.max_trials,
            f"leaves nothing to measure: {filling} starts only fill the compile cache",
            f"write at least {filling + 1}, or compileCache mode shared",
        )
    hours = spec.budget.max_gpu_hours
    needed = min(config.gpus for config in configs) * least / 3600
    if hours is not None and hours < needed:
        yield Problem(
            "spec.budget.maxGpuHours",
            hours,
            f"is less than one trial needs ({needed:.2g} GPU hours)",
            "raise it, or measure fewer loads",
        )


def _written(document: Mapping[str, Any], field: str) -> object:
    """The value at a dotted path as the user wrote it."""
    node: Any = document
    for part in re.findall(r"[^.\[\]]+", field):
        node = node[int(part)] if isinstance(node, list) else node.get(part, MISSING)
    return node


def _refuse(problems: tuple[Problem, ...]) -> None:
    """Raise what was found, the first problem of each field."""
    by_field: dict[str, Problem] = {}
    for problem in problems:
        by_field.setdefault(problem.field, problem)
    if by_field:
        raise SpecError(tuple(by_field.values()))
