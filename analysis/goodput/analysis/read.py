"""Reading a sweep's folder: what has no commit is ignored, what has one is checked against it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from goodput.analysis.documents import parse
from goodput.analysis.errors import ChecksumError, EvidenceError, RecordError, SweepNotFoundError
from goodput.analysis.records import completed, missing_columns
from goodput.analysis.schema.cell import CellDocument
from goodput.analysis.schema.commit import Commit, Result
from goodput.analysis.schema.planned import CellKey
from goodput.analysis.schema.sweep import SpecDocument, StatesDocument
from goodput.analysis.store import Store

T = TypeVar("T")
R = TypeVar("R")
READERS = 8  # objects fetched at once; a local disk gains nothing, a distant store much
LOOK_AROUND = 10_000  # keys that are looked at for sweeps where the URI is none
_COMMIT = re.compile(r"cells/config=([^/]+)/load=([^/]+)/block=([^/]+)/attempt=(\d+)/_COMMIT\.json")
_RESULT = re.compile(r"cells/config=([^/]+)/load=([^/]+)/block=([^/]+)/_RESULT\.json")


@dataclass(frozen=True)
class Index:
    """Keys below ``cells/`` that count: results, and commits by cell and attempt."""

    results: frozenset[CellKey]
    commits: dict[CellKey, tuple[int, ...]]
    keys: frozenset[str]


@dataclass(frozen=True)
class VoidAttempt:
    """An attempt that was committed and does not count."""

    key: CellKey
    attempt: int
    reason: str


def read_spec(store: Store) -> SpecDocument:
    """``spec.json``. Raises `SweepNotFoundError` where there is none; lists the sweeps that lie below."""
    data = store.get("spec.json")
    if data is None:
        listed = islice(store.keys(""), LOOK_AROUND)
        below = sorted({key.split("/", 1)[0] for key in listed if key.endswith("/spec.json")})
        hint = f"; sweeps there: {', '.join(below)}" if below else ""
        raise SweepNotFoundError(f"{store.uri}: no spec.json{hint}")
    return parse(SpecDocument, data, "spec.json")


def read_states(store: Store) -> StatesDocument | None:
    """``states.json``, or None where no analysis has written it yet."""
    data = store.get("states.json")
    return None if data is None else parse(StatesDocument, data, "states.json")


def read_index(store: Store) -> Index:
    """One listing of ``cells/``."""
    keys = frozenset(store.keys("cells"))
    commits: dict[CellKey, list[int]] = {}
    results = set()
    for key in sorted(keys):
        if found := _COMMIT.fullmatch(key):
            cell = CellKey(config=found[1], load=found[2], block=found[3])
            commits.setdefault(cell, []).append(int(found[4]))
        elif found := _RESULT.fullmatch(key):
            results.add(CellKey(config=found[1], load=found[2], block=found[3]))
    ordered = {cell: tuple(sorted(attempts)) for cell, attempts in commits.items()}
    return Index(frozenset(results), ordered, keys)


def read_results(
    store: Store, spec: SpecDocument, index: Index, each: Callable[[CellDocument, pa.Table], T]
) -> list[T]:
    """``each(cell.json, requests.parquet)`` of every result, in the order of their keys.

    Records are handed over one by one and dropped, so that memory stays small.

    Raises:
        ChecksumError: a file is not what its commit says; the message names it.
        EvidenceError: a cell's evidence is not the sweep's.
        RecordError: a document is broken or in the wrong place.
    """
    configs, loads = {config.id for config in spec.configs}, {load.id for load in spec.loads}

    def one(key: CellKey) -> T:
        if key.config not in configs or key.load not in loads:
            raise RecordError(f"{key.prefix}: spec.json plans no such config or load")
        document, table = _read_result(store, key, index)
        if document.evidence != spec.evidence:
            raise EvidenceError(
                f"{key.attempt_prefix(document.attempt)}/cell.json: evidence is {document.evidence}, the sweep's is "
                f"{spec.evidence}; the two are never mixed"
            )
        return each(document, table)

    return _parallel(one, sorted(index.results, key=lambda key: key.prefix))


def read_voids(store: Store, index: Index) -> list[VoidAttempt]:
    """All committed attempts that are void, with their reasons."""

    def one(where: tuple[CellKey, int]) -> VoidAttempt | None:
        key, attempt = where
        name = f"{key.attempt_prefix(attempt)}/_COMMIT.json"
        commit = parse(Commit, _get(store, name), name)
        if commit.outcome == "valid":
            return None if key in index.results else VoidAttempt(key, attempt, "NotClaimed")
        return VoidAttempt(key, attempt, commit.reason or "Void")

    surplus = [
        (key, attempt)
        for key, attempts in sorted(index.commits.items(), key=lambda item: item[0].prefix)
        for attempt in attempts
        if key not in index.results or len(attempts) > 1
    ]
    return [void for void in _parallel(one, surplus) if void is not None]


def _read_result(store: Store, key: CellKey, index: Index) -> tuple[CellDocument, pa.Table]:
    name = f"{key.prefix}/_RESULT.json"
    result = parse(Result, _get(store, name), name)
    folder = key.attempt_prefix(result.attempt)
    data = _get(store, f"{folder}/_COMMIT.json")
    if hashlib.sha256(data).hexdigest() != result.commit_sha256:
        raise ChecksumError(f"{folder}/_COMMIT.json: not the commit that {name} names (SHA-256 differs)")
    commit = parse(Commit, data, f"{folder}/_COMMIT.json")
    if commit.outcome != "valid" or commit.key != key or commit.attempt != result.attempt:
        raise RecordError(f"{folder}/_COMMIT.json: not a valid commit of this cell and attempt")
    absent = [file for file in commit.files if f"{folder}/{file}" not in index.keys]
    if absent:
        raise RecordError(f"{folder}: committed files are missing: {', '.join(sorted(absent))}")
    document = parse(CellDocument, _checked(store, folder, "cell.json", commit), f"{folder}/cell.json")
    if document.key != key or document.config.id != key.config or document.load.id != key.load:
        raise RecordError(f"{folder}/cell.json: describes another cell than its folder")
    if document.window is None or document.outcome != "valid":
        raise RecordError(f"{folder}/cell.json: a result without a window")
    return document, _requests(
        _checked(store, folder, "requests.parquet", commit), f"{folder}/requests.parquet", commit
    )


def _requests(data: bytes, key: str, commit: Commit) -> pa.Table:
    try:
        table = pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
    except pa.ArrowException as error:
        raise RecordError(f"{key}: not a Parquet file ({error})") from error
    table = completed(table)
    if missing := missing_columns(table):
        raise RecordError(f"{key}: columns are missing: {', '.join(missing)}")
    rows = commit.files["requests.parquet"].rows
    if rows is not None and rows != table.num_rows:
        raise RecordError(f"{key}: {table.num_rows} rows, its commit says {rows}")
    return table


def _checked(store: Store, folder: str, name: str, commit: Commit) -> bytes:
    if name not in commit.files:
        raise RecordError(f"{folder}/_COMMIT.json: names no {name}")
    data = _get(store, f"{folder}/{name}")
    if hashlib.sha256(data).hexdigest() != commit.files[name].sha256:
        raise ChecksumError(f"{folder}/{name}: SHA-256 is not the one in its commit")
    return data


def _get(store: Store, key: str) -> bytes:
    data = store.get(key)
    if data is None:
        raise RecordError(f"{key}: missing")
    return data


def _parallel(one: Callable[[T], R], items: Iterable[T]) -> list[R]:
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(one, items))
