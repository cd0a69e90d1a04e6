"""Scalar types of the spec: how they are written, and what they are in code."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from goodput.analysis import ids

DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"
QUANTITY_PATTERN = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"
URI_PATTERN = r"^(s3|gs|az|file)://.+$"
DATASET_PATTERN = r"^(https://.+|(s3|gs|az|file)://[^#?%]+)$"
HTTP_PATTERN = r"^https?://.+$"
SERVER_PATTERN = r"^https?://[^/@?#\s]+(/[^@?#\s]*)?$"
NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
OBJECT_NAME_PATTERN = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
FLAG_PATTERN = r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$"
FLAG_VALUE_LENGTH = 1024

_UNIT_SECONDS = {"h": Decimal(3600), "m": Decimal(60), "s": Decimal(1), "ms": Decimal("0.001")}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_LONGEST_SECONDS = 366 * 24 * 3600


def parse_duration(text: str) -> float:
    """Seconds of a duration such as ``500ms``, ``20m`` or ``1h30m``. Raises `ValueError` for anything else."""
    if len(text) > 32 or not re.fullmatch(DURATION_PATTERN, text):
        raise ValueError(f"not a duration: {text!r}")
    seconds = sum((Decimal(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(text)), Decimal())
    if seconds > _LONGEST_SECONDS:
        raise ValueError(f"longer than a year: {text!r}")
    return float(seconds)


def format_duration(seconds: float) -> str:
    """The shortest duration that `parse_duration` reads back: ``1h30m``, ``60s`` as ``1m``, ``0.5`` as ``500ms``."""
    left = Decimal(repr(seconds))
    if left == 0:
        return "0s"
    if left < 1:
        return f"{ids.text(float(left * 1000))}ms"
    hours, left = divmod(left, 3600)
    minutes, left = divmod(left, 60)
    parts = [f"{count}{unit}" for count, unit in ((int(hours), "h"), (int(minutes), "m")) if count]
    if left:
        parts.append(f"{ids.text(float(left))}s")
    return "".join(parts)


def _duration(value: object, info: ValidationInfo) -> object:
    if isinstance(value, float) and info.mode == "python":  # built in code, where times are in seconds
        return value
    if not isinstance(value, str):
        raise PydanticCustomError("duration", "must be a duration in quotes")
    try:
        return parse_duration(value)
    except ValueError as error:
        raise PydanticCustomError("duration", "is not a duration of at most a year") from error


def _flag_value(value: object) -> object:
    if isinstance(value, (bool, float)):
        raise PydanticCustomError("flag_value", "must be a whole number or text")
    if isinstance(value, int):
        return str(value)
    return value


def _quantity(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not re.fullmatch(QUANTITY_PATTERN, value):
        raise PydanticCustomError("quantity", "is not a quantity")
    return value


#: Written as ``500ms``, ``20m``, ``1h30m``; seconds in code.
Seconds = Annotated[
    float,
    BeforeValidator(_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "maxLength": 32, "pattern": DURATION_PATTERN}),
]

#: A flag's value: a whole number or text; text in code. Booleans and decimals are written in quotes.
FlagValue = Annotated[
    str,
    BeforeValidator(_flag_value),
    Field(max_length=FLAG_VALUE_LENGTH),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "maxLength": FLAG_VALUE_LENGTH}),
]

#: A Kubernetes quantity (``4``, ``500m``, ``16Gi``), kept as text.
Quantity = Annotated[
    str,
    BeforeValidator(_quantity),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "maxLength": 32, "pattern": QUANTITY_PATTERN}),
]

ShortName = Annotated[str, Field(min_length=1, max_length=30, pattern=NAME_PATTERN)]
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=OBJECT_NAME_PATTERN)]
Text = Annotated[str, Field(min_length=1, max_length=512)]
Tokens = Annotated[int, Field(ge=1, le=1_048_576)]
Rate = Annotated[float, Field(gt=0, le=100_000)]
Speed = Annotated[float, Field(gt=0, le=10_000)]
