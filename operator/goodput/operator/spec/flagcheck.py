"""Refuses flags that no engine knows, that the operator sets itself, or whose value is of a wrong kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from goodput.operator.spec.engineversion import flags_of
from goodput.operator.spec.errors import MISSING, Problem
from goodput.operator.spec.flagtable import FlagValueError
from goodput.operator.spec.models import EngineSpec, SweepSpec
from goodput.operator.spec.parse import nearest

#: In exclude and reference this key is no flag: it names an engine.
ENGINE_KEY = "engine"


def flag_problems(spec: SweepSpec) -> Iterator[Problem]:
    """All problems with flags, in the order of the spec."""
    for number, engine in enumerate(spec.engines):
        yield from _map(f"spec.engines[{number}].args", engine.args, [engine])
    configs = spec.configs
    if configs is None:
        return
    for flag, values in (configs.grid or {}).items():
        field = f"spec.configs.grid.{flag}"
        problem = _unknown(field, flag, spec.engines)
        if problem is not None:
            yield problem
            continue
        for number, value in enumerate(values):
            yield from _value(f"{field}[{number}]", flag, value, spec.engines)
    for number, point in enumerate(configs.points or ()):
        yield from _map(f"spec.configs.list[{number}]", point, spec.engines)
    for number, point in enumerate(configs.exclude):
        yield from _selector(f"spec.configs.exclude[{number}]", point, spec.engines)
    if configs.reference is not None:
        yield from _selector("spec.configs.reference", configs.reference, spec.engines)


def normal_point(point: Mapping[str, str], engines: Sequence[EngineSpec]) -> dict[str, str]:
    """A selector with its values in normal spelling."""
    normal = {}
    for flag, value in point.items():
        known = [flags_of(engine) for engine in engines if flags_of(engine).kind(flag)]
        normal[flag] = known[0].normal(flag, value) if known and flag != ENGINE_KEY else value
    return normal


def _map(place: str, flags: Mapping[str, str], engines: Sequence[EngineSpec]) -> Iterator[Problem]:
    for flag, value in flags.items():
        field = f"{place}.{flag}"
        problem = _unknown(field, flag, engines)
        if problem is not None:
            yield problem
        else:
            yield from _value(field, flag, value, engines)


def _selector(place: str, point: Mapping[str, str], engines: Sequence[EngineSpec]) -> Iterator[Problem]:
    names = [engine.name for engine in engines]
    if ENGINE_KEY in point and point[ENGINE_KEY] not in names:
        near = nearest(point[ENGINE_KEY], names)
        fix = f"did you mean {near}?" if near else f"the engines are {', '.join(names)}"
        yield Problem(f"{place}.{ENGINE_KEY}", point[ENGINE_KEY], "is not an engine", fix)
    yield from _map(place, {k: v for k, v in point.items() if k != ENGINE_KEY}, engines)


def _unknown(field: str, flag: str, engines: Sequence[EngineSpec]) -> Problem | None:
    tables = [flags_of(engine) for engine in engines]
    for flags in tables:
        if flag in flags.managed:
            return Problem(field, MISSING, "is not for a sweep to set", flags.managed[flag])
    if any(flags.kind(flag) for flags in tables):
        return None
    if all(engine.kind == "external" for engine in engines):
        return Problem(
            field, MISSING, "an external server takes no flags", "remove it; set it where that server starts"
        )
    whose = f"engine {engines[0].name}" if len(engines) == 1 else "any engine"
    for flags in tables:
        if flag in flags.absent:
            return Problem(field, MISSING, f"is no flag of {whose}", flags.absent[flag])
    known = sorted({name for flags in tables for name in flags.kinds})
    near = nearest(flag, known) or nearest(flag.replace("-", "_").lower().removeprefix("no_"), known)
    fix = f"did you mean {near}?" if near else "see the flags of the engine's version"
    return Problem(field, MISSING, f"is no flag of {whose}", fix)


def _value(field: str, flag: str, value: str, engines: Sequence[EngineSpec]) -> Iterator[Problem]:
    for engine in engines:
        try:
            flags_of(engine).normal(flag, value)
        except KeyError:
            continue
        except FlagValueError as error:
            yield Problem(field, value, error.message, error.fix)
            return
