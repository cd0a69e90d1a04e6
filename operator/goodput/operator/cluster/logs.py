"""What is kept of a trial: logs, events and pods' descriptions, scrubbed and small enough for one ConfigMap."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import zstandard

from goodput.operator.cluster import bodies
from goodput.operator.cluster.bodies import Body

SERVER_LOG: Final = "server.log.zst"
RUNNER_LOG: Final = "runner.log.zst"
EVENTS: Final = "events.json"
PODS: Final = "pod.json"
PLAN_BYTES: Final = 60 << 10
"""A trial's plan is kept with its logs unless it is larger: it is read for a look, and can be derived again."""
TARGET: Final = "target"
"""Names the folder in the store that the analysis puts the files into."""
#: Bytes of each file; together at most 900 KiB (DESIGN §4.1), below the API server's 1 MiB for a ConfigMap.
LIMITS: Final[Mapping[str, int]] = {
    SERVER_LOG: 420 << 10,
    RUNNER_LOG: 220 << 10,
    EVENTS: 100 << 10,
    PODS: 100 << 10,
}
MARK: Final = "\n[... {count} characters left out ...]\n"
HIDDEN: Final = "***"

_SECRETS: Final = (
    re.compile(r"(?P<keep>://[^/\s:@]+:)[^@\s/]+(?=@)"),  # user:password@ in a URL
    re.compile(r"(?P<keep>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(?P<keep>)\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"(?P<keep>)\bhf_[A-Za-z0-9]{20,}\b"),
    re.compile(
        r"(?P<keep>(?:api[_-]?key|secret[_-]?access[_-]?key|secret[_-]?key|session[_-]?token|security[_-]?token|"
        r"access[_-]?token|hf[_-]?token|password|passwd|signature|x-amz-credential)[\"']?\s*[=:]\s*[\[\"']*)"
        r"[^\s\"',;&}\]]+",
        re.IGNORECASE,
    ),
)
_SECRET_NAME: Final = re.compile(r"(?i)(secret|token|password|passwd|credential|api_?key|access_?key)")


def scrub(text: str) -> str:
    """The text without what looks like a credential."""
    for pattern in _SECRETS:
        text = pattern.sub(rf"\g<keep>{HIDDEN}", text)
    return text


def packed(log: str, limit: int) -> bytes:
    """A log, scrubbed and compressed. One that is too long loses its middle: start and end say most."""
    text = scrub(log)
    data = _compress(text)
    keep = len(text)
    while len(data) > limit:
        keep = int(keep * min(0.9, 0.95 * limit / len(data)))
        head = keep // 3
        cut = MARK.format(count=len(text) - keep)
        data = _compress(text[:head] + cut + text[len(text) - (keep - head) :])
    return data


def description(pods: Iterable[Body]) -> bytes:
    """The pods as the API server has them, without managed fields and without values of secret variables."""
    return _fitting([_plain_env(bodies.slim(pod)) for pod in pods], LIMITS[PODS])


def events(found: Iterable[Body]) -> bytes:
    """Events, the oldest first; where they are too many the oldest are left out."""
    kept = ("type", "reason", "message", "count", "firstTimestamp", "lastTimestamp", "eventTime")
    rows = [
        {"object": _about(event), **{key: event[key] for key in kept if event.get(key) is not None}}
        for event in sorted(found, key=_moment)
    ]
    return _fitting(rows, LIMITS[EVENTS])


def _compress(text: str) -> bytes:
    return zstandard.ZstdCompressor(level=10).compress(text.encode())


def _fitting(rows: list[dict[str, Any]], limit: int) -> bytes:
    while True:
        data = scrub(json.dumps(rows, indent=1)).encode()
        if len(data) <= limit or not rows:
            return data
        rows = rows[max(1, len(rows) // 4) :]


def _about(event: Body) -> str:
    involved = event.get("involvedObject") or {}
    return f"{involved.get('kind')}/{involved.get('name')}"


def _moment(event: Body) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _plain_env(pod: dict[str, Any]) -> dict[str, Any]:
    spec = dict(pod.get("spec") or {})
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [{**one, "env": [_hidden(entry) for entry in one.get("env") or ()]} for one in spec[kind]]
    return {**pod, "spec": spec}


def _hidden(entry: Mapping[str, Any]) -> dict[str, Any]:
    secret = "value" in entry and _SECRET_NAME.search(str(entry.get("name", "")))
    return {**entry, "value": HIDDEN} if secret else dict(entry)
