"""The canary: can this identity write to the store, and does the store honour create-only?"""

from __future__ import annotations

import json
import logging
import time

from goodput.analysis.store import Store, StoreError, open_store
from goodput.runner.contract import CanaryAnswer, CanaryInput

SPEC = "spec.json"
PROBE = "canary.json"
RETRIES_SECONDS = (1.0, 3.0)
STORE_RETRY_SECONDS = 3.0
_PROBED = b'{"v": 1, "purpose": "written twice with create-only; the second must be refused"}\n'
_log = logging.getLogger(__name__)


def canary(given: CanaryInput) -> CanaryAnswer:
    """Write ``spec.json`` and prove that the store refuses to create a key twice. A refusal is tried again twice."""
    last: StoreError | None = None
    for pause in (*RETRIES_SECONDS, 0.0):
        try:
            return _try(given)
        except StoreError as error:
            _log.warning("%s", error)
            last = error
            time.sleep(pause)
    assert last is not None
    if "501" in str(last) or "NotImplemented" in str(last):
        return CanaryAnswer(ok=False, reason="ConditionalCreateIgnored", message=str(last))
    return CanaryAnswer(ok=False, reason=last.reason, message=str(last))


def _try(given: CanaryInput) -> CanaryAnswer:
    target = given.results
    store = open_store(
        f"{target.uri.rstrip('/')}/sweep={given.spec.folder}",
        endpoint=target.endpoint,
        region=target.region,
        retry_seconds=STORE_RETRY_SECONDS,
    )
    store.create(PROBE, _PROBED)
    if store.create(PROBE, _PROBED):
        message = f"{store.uri}: the store ignores If-None-Match (create-only); results could be overwritten"
        return CanaryAnswer(ok=False, reason="ConditionalCreateIgnored", message=message)
    return _write_spec(store, given.spec.to_json())


def _write_spec(store: Store, spec: bytes) -> CanaryAnswer:
    if not store.create(SPEC, spec):
        there = store.get(SPEC)
        if there is not None and json.loads(there) != json.loads(spec):
            message = f"{store.uri}/{SPEC} is there already and says something else"
            return CanaryAnswer(ok=False, reason="SpecConflict", message=message)
    return CanaryAnswer(ok=True)
