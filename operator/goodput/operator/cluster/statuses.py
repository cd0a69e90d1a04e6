"""Writing a status: the smallest merge patch, and the Events that tell of a change."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from goodput.operator.cluster import bodies
from goodput.operator.cluster.names import FIELD_MANAGER, Owner
from goodput.operator.spec.models import API_VERSION, KIND

MESSAGE_CHARACTERS: Final = 1024  # the API server's limit for an Event's message
_BAD: Final = frozenset({"Failed", "PartiallyFailed", "Cancelled"})


@dataclass(frozen=True)
class News:
    """One change worth an Event."""

    reason: str
    message: str
    warning: bool


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7386) from one document to another; empty where they are equal."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = merge_patch(before, value)
            if inner:
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch


def news(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[News]:
    """What changed: the phase, the last error, and whether the store takes the results."""
    phase = str(new.get("phase", ""))
    if phase and phase != old.get("phase"):
        reason, message = _standing(new)
        text = f"{reason}: {message}" if message else reason
        yield News(phase, text, warning=phase in _BAD)
    error = new.get("lastError") or {}
    if error and error != (old.get("lastError") or {}):
        yield News(str(error.get("reason")), str(error.get("message", "")), warning=True)
    now, before = (_condition(status, "ResultsCommitted") for status in (new, old))
    if now.get("status") == "False" and now.get("reason") != before.get("reason"):
        yield News(str(now.get("reason")), str(now.get("message", "")), warning=True)


def event(owner: Owner, found: News, now: float) -> dict[str, Any]:
    """The Event about the sweep. Its name says what it is, so that the same news twice is one Event."""
    digest = hashlib.sha256(f"{owner.uid}|{found.reason}|{found.message}|{now:.0f}".encode()).hexdigest()[:16]
    moment = bodies.timestamp(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{owner.name}.{digest}", "namespace": owner.namespace},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": owner.name,
            "namespace": owner.namespace,
            "uid": owner.uid,
        },
        "type": "Warning" if found.warning else "Normal",
        "reason": found.reason,
        "message": found.message[:MESSAGE_CHARACTERS],
        "source": {"component": FIELD_MANAGER},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def _standing(status: Mapping[str, Any]) -> tuple[str, str]:
    """Reason and message of the condition that says where the sweep stands."""
    for kind in ("Complete", "Failed", "Progressing"):
        found = _condition(status, kind)
        if found.get("status") == "True":
            return str(found.get("reason", "")), str(found.get("message", ""))
    found = _condition(status, "Progressing")
    return str(found.get("reason", "")), str(found.get("message", ""))


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((one for one in status.get("conditions") or () if one.get("type") == kind), {})
