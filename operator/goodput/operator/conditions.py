"""Conditions of a status: ``lastTransitionTime`` moves only when ``status`` does, as Kubernetes asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from goodput.operator.clock import timestamp

MESSAGE_CHARACTERS = 1024


@dataclass(frozen=True)
class Condition:
    """One condition as it holds now."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


def merged(
    conditions: Iterable[Condition], before: Mapping[str, object], generation: int, now: float
) -> list[dict[str, object]]:
    """The conditions as written: the time of one whose status did not change stays."""
    old = before.get("conditions")
    times = {
        item["type"]: (item.get("status"), item.get("lastTransitionTime"))
        for item in (old if isinstance(old, (list, tuple)) else ())
        if isinstance(item, Mapping) and "type" in item
    }
    written: list[dict[str, object]] = []
    for condition in conditions:
        status, since = times.get(condition.type, (None, None))
        written.append(
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": short(condition.message),
                "observedGeneration": generation,
                "lastTransitionTime": since if status == condition.status and since else timestamp(now),
            }
        )
    return written


def short(text: str) -> str:
    """A message that fits: the start of a long one."""
    return text if len(text) <= MESSAGE_CHARACTERS else text[: MESSAGE_CHARACTERS - 1] + "…"
