from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from goodput.analysis.schema.commit import Commit, Result
from goodput.analysis.schema.planned import CellKey
from goodput.analysis.store import Store, StoreError, open_store
from goodput.runner.commit import RESULT, stored_cell, upload
from goodput.runner.spool import COMMIT, CellSpool, Committed

FILES = {"cell.json": b"{}"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store((tmp_path / "store").as_uri())


@pytest.fixture
def staged(tmp_path: Path, commit: Commit) -> CellSpool:
    cell = CellSpool(tmp_path / "cell")
    cell.begin(0.0)
    cell.stage(FILES, commit)
    return cell


def test_files_then_the_commit_then_the_result(store: Store, staged: CellSpool, commit: Commit, key: CellKey) -> None:
    assert upload(store, staged, commit) == Committed(outcome="valid")
    prefix = key.attempt_prefix(commit.attempt)
    stored = store.get(f"{prefix}/{COMMIT}")
    assert stored == commit.to_json()
    assert store.get(f"{prefix}/cell.json") == b"{}"
    result = Result.model_validate_json(store.get(f"{key.prefix}/{RESULT}") or b"")
    assert (result.attempt, result.commit_sha256) == (commit.attempt, hashlib.sha256(stored).hexdigest())


def test_a_void_commit_claims_nothing(store: Store, staged: CellSpool, commit: Commit, key: CellKey) -> None:
    void = commit.model_copy(update={"outcome": "void", "reason": "NotIdle"})
    staged.stage(FILES, void)
    assert upload(store, staged, void) == Committed(outcome="void", reason="NotIdle")
    assert store.get(f"{key.prefix}/{RESULT}") is None


def test_of_two_attempts_one_is_the_result(store: Store, staged: CellSpool, commit: Commit, key: CellKey) -> None:
    upload(store, staged, commit)
    later = commit.model_copy(update={"attempt": commit.attempt + 1})
    staged.stage(FILES, later)
    upload(store, staged, later)
    assert Result.model_validate_json(store.get(f"{key.prefix}/{RESULT}") or b"").attempt == commit.attempt


def test_uploading_twice_changes_nothing(store: Store, staged: CellSpool, commit: Commit) -> None:
    upload(store, staged, commit)
    before = {name: store.get(name) for name in store.keys()}  # noqa: SIM118  # not a mapping
    assert upload(store, staged, commit) == Committed(outcome="valid")
    assert {name: store.get(name) for name in store.keys()} == before  # noqa: SIM118


def test_a_commit_that_is_there_is_the_truth(store: Store, staged: CellSpool, commit: Commit, key: CellKey) -> None:
    there = commit.model_copy(update={"outcome": "void", "reason": "NotIdle"})
    name = f"{key.attempt_prefix(commit.attempt)}/{COMMIT}"
    store.put(name, there.to_json())
    assert upload(store, staged, commit) == Committed(outcome="void", reason="NotIdle")
    assert store.get(name) == there.to_json()
    assert store.get(f"{key.prefix}/{RESULT}") is None


class Failing(Store):
    """Fails at the n-th write, before or after it took effect."""

    def __init__(self, inner: Store, at: int, *, after: bool) -> None:
        self._inner, self._left, self._after = inner, at, after

    def _write(self, act: Callable[[], bool]) -> bool:
        self._left -= 1
        if self._left != 0:
            return act()
        if self._after:
            act()
        raise StoreError("writing", PermissionError("no"))

    def create(self, key: str, data: bytes) -> bool:
        return self._write(lambda: self._inner.create(key, data))

    def put(self, key: str, data: bytes) -> None:
        def act() -> bool:
            self._inner.put(key, data)
            return True

        self._write(act)

    def get(self, key: str) -> bytes | None:
        return self._inner.get(key)


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("after", [False, True])
def test_repeating_after_any_failure_ends_the_same(
    store: Store, staged: CellSpool, commit: Commit, at: int, after: bool
) -> None:
    with pytest.raises(StoreError):
        upload(Failing(store, at, after=after), staged, commit)
    assert upload(store, staged, commit) == Committed(outcome="valid")
    assert Result.model_validate_json(store.get(f"{commit.key.prefix}/{RESULT}") or b"").attempt == commit.attempt
    assert len(list(store.keys())) == 3


def test_what_need_not_be_measured_again(store: Store, commit: Commit, key: CellKey) -> None:
    attempt = commit.attempt
    assert stored_cell(store, key, attempt) is None
    earlier = commit.model_copy(update={"attempt": attempt - 1, "outcome": "void", "reason": "NotIdle"})
    store.put(f"{key.attempt_prefix(attempt - 1)}/{COMMIT}", earlier.to_json())
    assert stored_cell(store, key, attempt) is None
    own = commit.model_copy(update={"outcome": "void", "reason": "RunnerFailed"})
    store.put(f"{key.attempt_prefix(attempt)}/{COMMIT}", own.to_json())
    assert stored_cell(store, key, attempt) == Committed(outcome="void", reason="RunnerFailed")


def test_a_valid_commit_that_was_never_claimed_is_claimed(store: Store, commit: Commit, key: CellKey) -> None:
    earlier = commit.model_copy(update={"attempt": commit.attempt - 1})
    store.put(f"{key.attempt_prefix(earlier.attempt)}/{COMMIT}", earlier.to_json())
    assert stored_cell(store, key, commit.attempt) == Committed(outcome="valid")
    assert Result.model_validate_json(store.get(f"{key.prefix}/{RESULT}") or b"").attempt == earlier.attempt
