"""From spool to store: files first, then the commit, then (valid) the claim on the cell's one result."""

from __future__ import annotations

import hashlib
import logging

from goodput.analysis.schema.commit import Commit, Result
from goodput.analysis.schema.planned import CellKey
from goodput.analysis.store import Store
from goodput.runner.spool import COMMIT, CellSpool, Committed

RESULT = "_RESULT.json"
_log = logging.getLogger(__name__)


def upload(store: Store, cell: CellSpool, commit: Commit) -> Committed:
    """Store what lies ready in the cell's spool. Can be repeated after any failure: nothing is stored twice.

    A commit of this attempt that is there already is the truth; its files are left alone.

    Raises:
        StoreError: refused or not reached; try again later.
    """
    prefix = commit.key.attempt_prefix(commit.attempt)
    stored = store.get(f"{prefix}/{COMMIT}")
    if stored is None:
        for name in commit.files:
            store.put(f"{prefix}/{name}", cell.staged(name))
        stored = cell.staged(COMMIT)
        if not store.create(f"{prefix}/{COMMIT}", stored):
            stored = store.get(f"{prefix}/{COMMIT}") or stored
    return settle(store, stored)


def settle(store: Store, stored: bytes) -> Committed:
    """Claim the result of a commit that is in the store, if it is valid, and say what it is."""
    commit = Commit.model_validate_json(stored)
    if commit.outcome == "valid":
        result = Result(key=commit.key, attempt=commit.attempt, commit_sha256=hashlib.sha256(stored).hexdigest())
        if not store.create(f"{commit.key.prefix}/{RESULT}", result.to_json()):
            _log.info("cell %s has a result already", commit.key.prefix)
    return Committed(outcome=commit.outcome, reason=commit.reason)


def stored_cell(store: Store, key: CellKey, attempt: int) -> Committed | None:
    """What the store has that makes measuring this cell in this attempt wrong.

    A result, whoever measured it; a commit of this attempt; or a valid commit of an earlier attempt that was
    not claimed (its runner died in between): it is claimed now.

    Raises:
        StoreError: refused or not reached.
    """
    if store.get(f"{key.prefix}/{RESULT}") is not None:
        return Committed(outcome="valid")
    own: Committed | None = None
    for name in sorted(store.keys(key.prefix)):
        if not name.endswith(f"/{COMMIT}"):
            continue
        stored = store.get(name)
        commit = None if stored is None else Commit.model_validate_json(stored)
        if stored is not None and commit is not None and (commit.outcome == "valid" or commit.attempt == attempt):
            own = settle(store, stored)
            if own.outcome == "valid":
                return own
    return own
