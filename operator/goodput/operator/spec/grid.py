"""The grid: counted before it is expanded, then expanded to configs and load points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from goodput.analysis.schema.planned import Config
from goodput.operator.spec.command import server_command
from goodput.operator.spec.engineversion import flags_of
from goodput.operator.spec.errors import Problem, SpecError
from goodput.operator.spec.flagcheck import ENGINE_KEY, normal_point
from goodput.operator.spec.gpus import gpus_of
from goodput.operator.spec.models import ConfigsSpec, EngineSpec, SweepSpec

#: More would not end: a config takes minutes, and each is a row of every table.
MAX_CONFIGS = 1_000
#: Configs × loads × blocks: each has a state and a row.
MAX_CELLS = 20_000


@dataclass(frozen=True)
class Counts:
    """Sizes of a sweep, from products alone: nothing is expanded. Excluded and equal points count."""

    configs: int
    loads: int
    blocks: int

    @property
    def cells(self) -> int:
        """Configs × loads × blocks."""
        return self.configs * self.loads * self.blocks


def count(spec: SweepSpec) -> Counts:
    """Upper bounds of what `expand` and `load_points` would make, in time linear in the spec's length."""
    configs = spec.configs or ConfigsSpec()
    points = math.prod(len(values) for values in (configs.grid or {}).values())
    work = spec.workload
    shapes = len(work.prompt_lengths) * len(work.output_lengths) if work.dataset == "random" else 1
    loads = shapes * len(work.amounts)
    return Counts(len(configs.points or range(points)) * len(spec.engines), loads, spec.plan.blocks.min)


def too_large(counts: Counts) -> Iterator[Problem]:
    """Refuses what would never end, before it is expanded."""
    if counts.configs > MAX_CONFIGS:
        yield Problem(
            "spec.configs",
            counts.configs,
            f"configs are too many, at most {MAX_CONFIGS:,}",
            "vary fewer flags, or fewer values of each",
        )
    if counts.cells > MAX_CELLS:
        yield Problem(
            "spec",
            counts.cells,
            f"cells (configs x loads x blocks) are too many, at most {MAX_CELLS:,}",
            "vary fewer flags, measure fewer loads, or lower plan.blocks.min",
        )


def expand(spec: SweepSpec) -> tuple[Config, ...]:
    """All configs: engines in their order, grid flags in alphabetical order, their values as written.

    The order does not depend on how a map was written, since the API server keeps no order of keys. The
    flags must have passed `flag_problems`. Raises `SpecError` when nothing is left.
    """
    configs = spec.configs or ConfigsSpec()
    excluded = [normal_point(point, spec.engines) for point in configs.exclude]
    found: dict[str, Config] = {}
    for engine in spec.engines:
        for point in _points(configs):
            config = _config(spec, engine, point)
            if not any(matches(config, other) for other in excluded):
                found.setdefault(config.id, config)
    if not found:
        raise SpecError((Problem("spec.configs.exclude", len(excluded), "entries leave no config", "exclude fewer"),))
    return tuple(found.values())


def reference_of(spec: SweepSpec, configs: tuple[Config, ...]) -> Config:
    """The config that the others are compared with. Raises `SpecError` unless exactly one is meant."""
    if spec.configs is None or spec.configs.reference is None:
        return configs[0]
    point = normal_point(spec.configs.reference, spec.engines)
    meant = [config for config in configs if matches(config, point)]
    if len(meant) == 1:
        return meant[0]
    fix = "name more of its flags, or its engine" if meant else f"name a config, such as {configs[0].label}"
    message = f"means {len(meant)} configs, not one"
    raise SpecError((Problem("spec.configs.reference", dict(spec.configs.reference), message, fix),))


def matches(config: Config, point: Mapping[str, str]) -> bool:
    """The config has all flag values of the point, and its engine where it names one."""
    return all(
        config.engine == value if flag == ENGINE_KEY else config.flags.get(flag) == value
        for flag, value in point.items()
    )


def _points(configs: ConfigsSpec) -> Iterator[Mapping[str, str]]:
    if configs.points is not None:
        yield from configs.points
        return
    axes = sorted((configs.grid or {}).items())
    for values in itertools.product(*(values for _, values in axes)):
        yield {flag: value for (flag, _), value in zip(axes, values, strict=True)}


def _config(spec: SweepSpec, engine: EngineSpec, point: Mapping[str, str]) -> Config:
    """The engine's args overlaid by those flags of the point that it knows."""
    known = flags_of(engine)
    swept = {flag: known.normal(flag, value) for flag, value in point.items() if known.kind(flag)}
    base = {flag: known.normal(flag, value) for flag, value in engine.args.items()}
    flags = base | swept
    return Config(
        engine=engine.name,
        kind=engine.kind,
        flags=flags,
        swept=swept,
        gpus=gpus_of(engine, flags),
        command=server_command(engine, flags, spec.model),
    )
