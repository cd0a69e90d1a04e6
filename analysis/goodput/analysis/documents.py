"""Reading stored documents of this and older schema versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from goodput.analysis.errors import RecordError, VersionError
from goodput.analysis.schema.base import SCHEMA_VERSION, Document

D = TypeVar("D", bound=Document)
Raw = dict[str, Any]
Upgrades = Mapping[tuple[str, int], Callable[[Raw], Raw]]

UPGRADES: Upgrades = {}
"""(class name, version) → turns a document of that version into the next one. Empty: version 1 is the first."""


def parse(kind: type[D], data: bytes, key: str, upgrades: Upgrades = UPGRADES) -> D:
    """The document in ``data``, brought up from older versions.

    Raises:
        VersionError: it is newer than this program.
        RecordError: it is not such a document; the message names ``key`` and the field.
    """
    try:
        raw = json.loads(data)
        version = raw["v"]
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{key}: not a versioned JSON document ({error})") from error
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise VersionError(f"{key}: schema version {version}; this program reads up to {SCHEMA_VERSION}")
    while (upgrade := upgrades.get((kind.__name__, raw["v"]))) is not None:
        raw = upgrade(raw)
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "document"
        raise RecordError(f"{key}: {where}: {first['msg']}") from error
