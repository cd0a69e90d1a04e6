"""From a document to the typed spec: what pydantic finds becomes problems in our own words."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from goodput.analysis import ids
from goodput.operator.spec.errors import MISSING, Problem, SpecError
from goodput.operator.spec.models import API_VERSION, KIND, SweepSpec
from goodput.operator.spec.scalars import (
    DATASET_PATTERN,
    HTTP_PATTERN,
    NAME_PATTERN,
    OBJECT_NAME_PATTERN,
    SERVER_PATTERN,
    URI_PATTERN,
)

_DURATION_FIX = "write a duration such as 500ms, 20s or 1h30m"
_QUOTE_FIX = 'put booleans and decimals in quotes: "true", "0.9"'
_FIXES = {
    "duration": _DURATION_FIX,
    "flag_value": _QUOTE_FIX,
    "quantity": 'write a quantity such as 4, "0.5" or 16Gi',
}
_TYPES = {
    "string_type": ("must be text", "put it in quotes"),
    "int_type": ("must be a whole number", "write it without quotes and without a point"),
    "int_from_float": ("must be a whole number", "write it without a point"),
    "float_type": ("must be a number", "write it without quotes"),
    "bool_type": ("must be true or false", "write true or false without quotes"),
    "tuple_type": ("must be a list", "write it in brackets, such as [1, 2]"),
    "dict_type": ("must be a map", "write it as key: value"),
    "model_type": ("must be a map", "write its fields as key: value"),
    "finite_number": ("must be a finite number", "write a number"),
}
_BOUNDS = {
    "greater_than": ("must be greater than {gt}", "write a larger value"),
    "greater_than_equal": ("must be at least {ge}", "write a larger value"),
    "less_than": ("must be less than {lt}", "write a smaller value"),
    "less_than_equal": ("must be at most {le}", "write a smaller value"),
    "too_short": ("must have at least {min_length} item(s), not {actual_length}", "add some"),
    "too_long": ("must have at most {max_length} items", "remove some, or make several sweeps"),
    "string_too_short": ("must have at least {min_length} character(s)", "write a longer text"),
    "string_too_long": ("must have at most {max_length} characters", "write a shorter text"),
}
_PATTERNS = {
    URI_PATTERN: ("has no known scheme", "begin it with s3://, gs://, az:// or file://"),
    DATASET_PATTERN: (
        "has no known scheme, or #, ? or % outside https",
        "begin it with s3://, gs://, az://, https:// or file://, and give the file a name without #, ? and %",
    ),
    NAME_PATTERN: ("must be lower-case letters, digits and -", "write a name such as vllm-032"),
    OBJECT_NAME_PATTERN: ("is not the name of an object", "use lower-case letters, digits, - and ."),
    HTTP_PATTERN: ("is not a URL", "begin it with http:// or https://"),
    SERVER_PATTERN: (
        "is not a server's URL",
        "write https://HOST:PORT/PATH; a key belongs into apiKeySecretRef, no user, password or query here",
    ),
}
_VALUELESS = ("missing", "extra_forbidden", "too_short", "too_long")


def parse_spec(document: Mapping[str, Any]) -> SweepSpec:
    """The typed spec of a whole BenchmarkSweep document. Raises `SpecError` with all problems of form."""
    problems = _envelope(document)
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        problems.append(Problem("spec", MISSING if spec is None else spec, "is required", "write it as a map"))
    if problems:
        raise SpecError(tuple(problems))
    try:
        return SweepSpec.model_validate_json(json.dumps(spec, default=str))
    except ValidationError as error:
        raise SpecError(tuple(map(_problem, _own_errors(error.errors())))) from error


def _envelope(document: Mapping[str, Any]) -> list[Problem]:
    problems = []
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        given = document.get(key, MISSING)
        if given != wanted:
            problems.append(Problem(key, given, f"must be {wanted}", f"write {key}: {wanted}"))
    unknown = [key for key in document if key not in ("apiVersion", "kind", "metadata", "spec", "status")]
    return problems + [Problem(str(key), MISSING, "is not a known field", "remove it") for key in unknown]


def _own_errors(details: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Without "too short" where only refused items made it so."""
    places = [detail["loc"] for detail in details]
    return [
        detail
        for detail in details
        if detail["type"] != "too_short"
        or not any(len(place) > len(detail["loc"]) and place[: len(detail["loc"])] == detail["loc"] for place in places)
    ]


def _problem(detail: ErrorDetails) -> Problem:
    location = [part for part in detail["loc"] if part != "[key]"]
    value = MISSING if _secret(location) or detail["type"] in _VALUELESS else detail["input"]
    message, fix = _words(detail, location)
    return Problem(dotted(["spec", *location]), value, message, fix)


def _words(detail: ErrorDetails, location: Sequence[str | int]) -> tuple[str, str]:
    """What is wrong and what to write instead."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _TYPES:
        return _TYPES[kind]
    if kind in _BOUNDS:
        message, fix = _BOUNDS[kind]
        return message.format(**{key: ids.text(bound) for key, bound in context.items()}), fix
    match kind:
        case "missing":
            words = "is required", "add it"
        case "extra_forbidden":
            words = "is not a known field", _nearest_field(location)
        case "literal_error":
            quote = " in quotes: YAML reads a bare on or off as true or false"
            message = "must be one of " + context["expected"].replace("'", "")
            words = message, "write one of them" + (quote if isinstance(detail["input"], bool) else "")
        case "string_pattern_mismatch" if context["pattern"] in _PATTERNS:
            words = _PATTERNS[context["pattern"]]
        case _:
            words = detail["msg"], _FIXES.get(kind, "see the field's description")
    return words


def dotted(parts: Sequence[str | int]) -> str:
    """A path as users write it: ``spec.engines[0].args.max_num_seqs``."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def nearest(word: str, words: Sequence[str]) -> str:
    """`` did you mean X?`` material: the closest of the words, or an empty text."""
    found = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return found[0] if found else ""


def _secret(location: Sequence[str | int]) -> bool:
    return ("env" in location and location[-1] == "value") or location[-2:] == ["external", "url"]


def _nearest_field(location: Sequence[str | int]) -> str:
    known = _fields_at(location[:-1])
    near = nearest(str(location[-1]), known)
    if near:
        return f"did you mean {near}?"
    return f"known here: {', '.join(known)}" if known else "remove it"


def _fields_at(location: Sequence[str | int]) -> list[str]:
    """Field names, as written, of the model at a location."""
    model: type[BaseModel] | None = SweepSpec
    for part in location:
        if isinstance(part, int):
            continue
        field = next((f for n, f in model.model_fields.items() if part in (n, f.alias)) if model else iter(()), None)
        model = model_in(field.annotation) if field else None
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def model_in(annotation: object) -> type[BaseModel] | None:
    """The model inside an annotation such as ``tuple[Model, ...] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := model_in(part))), None)
