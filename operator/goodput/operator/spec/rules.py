"""The rules of the message table, as the command line checks them (the API server has them in CEL)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from goodput.operator.spec.errors import MISSING, Problem
from goodput.operator.spec.external import unusable
from goodput.operator.spec.messages import RULES
from goodput.operator.spec.models import ConfigsSpec, EngineSpec, SweepSpec
from goodput.operator.spec.scalars import FLAG_PATTERN
from goodput.operator.spec.workloadcheck import workload_problems

MAX_NAME = 40
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""The API server's own rule for names: a name is part of paths and keys."""


def shape_problems(name: str, spec: SweepSpec, *, in_cluster: bool) -> Iterator[Problem]:
    """All broken rules of form, in the order of the spec."""
    if len(name) > MAX_NAME:
        yield RULES["name-length"].problem(name)
    if not _NAME.fullmatch(name):
        fix = "write a name such as chunk-budget: lower case letters, digits, - and ."
        yield Problem("metadata.name", name, "is no name of a Kubernetes object", fix)
    yield from _model(spec)
    for number, engine in enumerate(spec.engines):
        yield from _engine(f"spec.engines[{number}]", engine, spec, in_cluster=in_cluster)
    yield from _engines(spec)
    if spec.configs is not None:
        yield from _configs(spec.configs)
    yield from workload_problems(spec.workload)
    yield from _promise(spec)


def _model(spec: SweepSpec) -> Iterator[Problem]:
    cache = spec.model.cache
    if cache is not None and cache.claim_name and cache.create:
        yield RULES["model-cache"].problem(MISSING)


def _engines(spec: SweepSpec) -> Iterator[Problem]:
    names = [engine.name for engine in spec.engines]
    for number, name in enumerate(names):
        if name in names[:number]:
            field = f"spec.engines[{number}].name"
            yield Problem(field, name, "is the name of another engine too", "give each its own name")
    kinds = [engine.kind for engine in spec.engines]
    if "simulated" in kinds and set(kinds) != {"simulated"}:
        yield RULES["evidence"].problem(kinds)


def _engine(place: str, engine: EngineSpec, spec: SweepSpec, *, in_cluster: bool) -> Iterator[Problem]:
    grid = (spec.configs.grid if spec.configs else None) or {}
    for flag in engine.args:
        if not re.fullmatch(FLAG_PATTERN, flag):
            yield RULES["flag-name:args"].problem(MISSING, field=f"{place}.args.{flag}")
        elif flag in grid:
            yield RULES["args-and-grid"].problem(MISSING, field=f"{place}.args.{flag}")
    if in_cluster and engine.kind in ("vllm", "transformers") and not engine.image:
        yield RULES["image"].problem(MISSING, field=f"{place}.image")
    if engine.profile and engine.kind != "simulated":
        yield RULES["profile"].problem(engine.profile, field=f"{place}.profile")
    yield from _external(place, engine)
    for number, variable in enumerate(engine.env):
        if (variable.value is None) == (variable.value_from is None):
            yield RULES["env"].problem(MISSING, field=f"{place}.env[{number}].valueFrom")
    cache = engine.compile_cache
    if (cache.claim_name is not None) != (cache.mode != "none"):
        yield RULES["compile-cache"].problem(MISSING, field=f"{place}.compileCache.claimName")
    if engine.startup_timeout_seconds <= 0:
        rule = RULES["positive:spec.engines[].startupTimeout"]
        yield rule.problem("0s", field=f"{place}.startupTimeout")


def _external(place: str, engine: EngineSpec) -> Iterator[Problem]:
    if (engine.external is not None) != (engine.kind == "external"):
        yield RULES["external"].problem(MISSING, field=f"{place}.external")
    if engine.kind == "external":
        for name in unusable(engine):
            yield RULES["external-only"].problem(MISSING, field=f"{place}.{name}")


def _configs(configs: ConfigsSpec) -> Iterator[Problem]:
    if configs.grid is not None and configs.points is not None:
        yield RULES["grid-or-list"].problem(MISSING)
    for flag in configs.grid or {}:
        if not re.fullmatch(FLAG_PATTERN, flag):
            yield RULES["flag-name:grid"].problem(MISSING, field=f"spec.configs.grid.{flag}")
    for number, point in enumerate(configs.points or ()):
        for flag in point:
            if not re.fullmatch(FLAG_PATTERN, flag):
                yield RULES["flag-name:list"].problem(MISSING, field=f"spec.configs.list[{number}].{flag}")


def _promise(spec: SweepSpec) -> Iterator[Problem]:
    slo = spec.slo
    for name, limit in (
        ("ttft", slo.ttft_seconds),
        ("tpot", slo.tpot_seconds),
        ("itl", slo.itl_seconds),
        ("e2e", slo.e2e_seconds),
    ):
        if limit == 0:
            yield RULES[f"positive:spec.slo.{name}"].problem("0s")
    if not slo.limited and spec.objective.name in ("goodput", "capacity"):
        yield RULES["slo-needed"].problem(MISSING)
    blocks = spec.plan.blocks
    if blocks.max is not None and blocks.max < blocks.min:
        yield RULES["blocks"].problem(blocks.max)
    if spec.budget.deadline_seconds == 0:
        yield RULES["positive:spec.budget.deadline"].problem("0s")
