"""What flags an engine knows, how their values are spelled, and how they look on a command line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

import yaml

from goodput.analysis import ids
from goodput.operator.spec.parse import nearest

FlagKind = Literal["size", "int", "float", "bool", "switch", "str", "list", "json"]

_MULTIPLIERS = {"": 1, **{u: 1000**n for n, u in enumerate("kmgt", 1)}, **{u: 1024**n for n, u in enumerate("KMGT", 1)}}
_SIZE = re.compile(r"([0-9]+)(?:\.([0-9]+))?([kmgtKMGT]?)")


class FlagValueError(ValueError):
    """A flag's value is not of its kind."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(f"{message}; {fix}")
        self.message = message
        self.fix = fix


@dataclass(frozen=True)
class FlagTable:
    """The flags of one kind of engine: their kinds, and those that the operator sets itself."""

    kinds: Mapping[str, FlagKind]
    managed: Mapping[str, str]  # flag → what to write instead
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # the only values, where they are known
    title: str = ""  # of the engine and its version, in messages
    absent: Mapping[str, str] = field(default_factory=dict)  # another engine's flag → why it is none here, and the fix

    def kind(self, flag: str) -> FlagKind | None:
        """The flag's kind; None where the engine does not know it. Keys below a json flag are text."""
        base, dot, _ = flag.partition(".")
        if dot:
            return "str" if self.kinds.get(base) == "json" else None
        return self.kinds.get(flag)

    def normal(self, flag: str, value: str) -> str:
        """The value's one spelling: ``8k`` is ``8000``, ``0.90`` is ``0.9``, ``True`` is ``true``.

        Raises:
            FlagValueError: the value is not of the flag's kind.
            KeyError: the engine does not know the flag.
        """
        kind = self.kind(flag)
        if kind is None:
            raise KeyError(flag)
        if flag == "max_model_len" and value in ("-1", "auto"):
            return value
        normal = _NORMAL.get(kind, _text)(self._chosen(flag, value.strip()))
        if flag.endswith("parallel_size") and kind == "int" and int(normal) < 1:
            raise FlagValueError("must be at least 1", "write a number of GPUs")
        return normal

    def _chosen(self, flag: str, value: str) -> str:
        """The value as the table spells it. vLLM reads names of backends in any spelling, None as unset.

        Raises:
            FlagValueError: it is none of the flag's.
        """
        values = self.choices.get(flag)
        if not values or value in ("", "None"):
            return value
        if flag.endswith("_backend"):
            spellings = {each.lower(): each for each in ("auto", *values)}
            if found := spellings.get(value.lower().replace("-", "_")):
                return found
        elif value in values:
            return value
        near = nearest(value, values)
        fix = f"did you mean {near}?" if near else f"write one of {', '.join(values)}"
        raise FlagValueError(f"is no {flag} of {self.title}", fix)

    def arguments(self, flags: Mapping[str, str]) -> list[str]:
        """Command-line words for flags in normal spelling, sorted by name."""
        words: list[str] = []
        for flag, value in sorted(flags.items()):
            name = option(flag)
            match self.kind(flag):
                case "bool":
                    words.append(name if value == "true" else f"--no-{name[2:]}")
                case "switch":
                    words += [name] if value == "true" else []
                case "list":
                    words += [name, *value.split()]
                case _:
                    words += [f"{name}={value}"] if value.startswith("-") else [name, value]
        return words


def option(flag: str) -> str:
    """``max_num_seqs`` as ``--max-num-seqs``; keys below a json flag keep their spelling."""
    base, dot, rest = flag.partition(".")
    return f"--{base.replace('_', '-')}{dot}{rest}"


@lru_cache
def table(kind: str, version: str = "") -> FlagTable:
    """The flags of a kind of engine, in a version where there are several; none where it takes no flags."""
    data: dict[str, Any] = {}
    for name in (kind, f"{kind}-{version}"):
        source = resources.files("goodput.operator.spec") / "flags" / f"{name}.yaml"
        if source.is_file():
            data |= yaml.safe_load(source.read_text(encoding="utf-8"))
    kinds = {flag: group for group, names in data.get("flags", {}).items() for flag in names or ()}
    choices = {flag: tuple(values) for flag, values in data.get("choices", {}).items()}
    title = data.get("title", f"vLLM {data.get('version', '')}")
    return FlagTable(kinds, data.get("managed", {}), choices, title, data.get("absent", {}))


def _size(value: str) -> str:
    match = _SIZE.fullmatch(value)
    if match is None or (match[2] and not match[3].islower()):
        raise FlagValueError("must be a whole number", "write 8192, 8k (8000) or 8K (8192)")
    number = float(f"{match[1]}.{match[2]}") if match[2] else int(match[1])
    return str(int(number * _MULTIPLIERS[match[3]]))


def _int(value: str) -> str:
    if not re.fullmatch(r"-?[0-9]+", value):
        raise FlagValueError("must be a whole number", "write a number such as 128")
    return str(int(value))


def _float(value: str) -> str:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FlagValueError("must be a number", 'write a number in quotes, such as "0.9"')
    return ids.text(number)


def _bool(value: str) -> str:
    if value.lower() not in ("true", "false"):
        raise FlagValueError("must be true or false", 'write "true" or "false", in quotes')
    return value.lower()


def _json(value: str) -> str:
    try:
        return json.dumps(json.loads(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except ValueError as error:
        raise FlagValueError("must be JSON", """write it in quotes, such as '{"key": 1}'""") from error


def _list(value: str) -> str:
    return " ".join(value.split())


def _text(value: str) -> str:
    return value


_NORMAL = {"size": _size, "int": _int, "float": _float, "bool": _bool, "switch": _bool, "json": _json, "list": _list}
