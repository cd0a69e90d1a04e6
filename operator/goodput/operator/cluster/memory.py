"""A trial's memory as annotations of its ConfigMap, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Literal

from pydantic import ValidationError

from goodput.operator.actions import Note
from goodput.operator.cluster import bodies, names
from goodput.operator.cluster.bodies import Body
from goodput.operator.observed import Failure, Memory
from goodput.runner.contract import Outcome

_LOGS: Final[Mapping[str, Literal["server", "saved", "uploaded"]]] = {
    "server": "server",
    "saved": "saved",
    "uploaded": "uploaded",
}
_TIMES: Final[Mapping[str, str]] = {
    "server_running": names.SERVER_RUNNING,
    "server_ready": names.SERVER_READY,
    "server_gone": names.SERVER_GONE,
    "released": names.RELEASED,
    "ended": names.ENDED,
}


def read(config_map: Body) -> Memory:
    """The memory that the annotations hold. What cannot be read counts as not noted, and is noted again."""
    found = bodies.annotated(config_map)
    return Memory(
        order=int(found.get(names.ORDER, "1")),
        created=bodies.created(config_map),
        outcome=outcome(found.get(names.OUTCOME)),
        failure=_failure(found.get(names.FAILURE)),
        interrupted=found.get(names.INTERRUPTED) == "true",
        logs=_LOGS.get(found.get(names.SAVED_LOGS, ""), "none"),
        server_running=_time(found, "server_running"),
        server_ready=_time(found, "server_ready"),
        server_gone=_time(found, "server_gone"),
        released=_time(found, "released"),
        ended=_time(found, "ended"),
    )


def as_annotations(note: Note) -> dict[str, str]:
    """Annotations that a note adds; what is None stays as it is."""
    made = {key: repr(moment) for field, key in _TIMES.items() if (moment := getattr(note, field)) is not None}
    if note.outcome is not None:
        made[names.OUTCOME] = note.outcome.message()
    if note.failure is not None:
        made[names.FAILURE] = json.dumps({"reason": note.failure.reason, "message": note.failure.message})
    if note.interrupted is not None:
        made[names.INTERRUPTED] = "true" if note.interrupted else "false"
    return made


def outcome(text: str | None) -> Outcome | None:
    """The outcome that a runner wrote, or None where the text is none: a crash's log, say."""
    if not text:
        return None
    try:
        return Outcome.model_validate_json(text)
    except ValidationError:
        return None


def _failure(text: str | None) -> Failure | None:
    if not text:
        return None
    found = json.loads(text)
    return Failure(str(found["reason"]), str(found["message"]))


def _time(found: Mapping[str, str], field: str) -> float | None:
    text = found.get(_TIMES[field])
    return float(text) if text else None
