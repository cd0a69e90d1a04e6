from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodput.analysis.analyze import run_analysis
from goodput.analysis.documents import parse
from goodput.analysis.errors import ChecksumError, EvidenceError, RecordError, SweepNotFoundError, VersionError
from goodput.analysis.schema.sweep import StatesDocument
from goodput.analysis.store import Store, open_store

Builder = Any  # SweepBuilder of conftest.py
Toy = Callable[..., Any]


def first_cell(sweep: Builder, **over: Any) -> str:
    sweep.write_spec()
    key = sweep.cell(sweep.configs[0], sweep.loads[0], "0", **over)
    return str(key.attempt_prefix(1))


def test_what_has_no_commit_is_ignored(sweep: Builder, store: Store) -> None:
    folder = first_cell(sweep)
    other = folder.replace("block=0", "block=1")
    for name in ("cell.json", "requests.parquet"):
        store.put(f"{other}/{name}", store.get(f"{folder}/{name}") or b"")
    assert len(run_analysis(store).cells) == 1


def test_a_valid_commit_without_a_claim_is_no_result(sweep: Builder, store: Store) -> None:
    first_cell(sweep, claim=False)
    result = run_analysis(store)
    assert result.cells == ()
    assert (result.planned[0].state, result.planned[0].reason) == ("void", "NotClaimed")


@pytest.mark.parametrize("name", ["requests.parquet", "cell.json", "_COMMIT.json"])
def test_changed_bytes_are_an_error_that_names_the_file(sweep: Builder, store: Store, name: str) -> None:
    folder = first_cell(sweep)
    store.put(f"{folder}/{name}", (store.get(f"{folder}/{name}") or b"") + b" ")
    with pytest.raises(ChecksumError, match=f"{folder}/{name}"):
        run_analysis(store)


def test_a_committed_file_that_is_missing_is_an_error(sweep: Builder, store: Store, tmp_path: Path) -> None:
    folder = first_cell(sweep)
    (tmp_path / "results/sweep=default.toy.01234567" / folder / "server.parquet").unlink()
    with pytest.raises(RecordError, match=r"server\.parquet"):
        run_analysis(store)


def test_evidence_is_never_mixed(sweep: Builder, store: Store) -> None:
    first_cell(sweep, evidence="measured")
    with pytest.raises(EvidenceError, match="never mixed"):
        run_analysis(store)


def test_a_cell_in_another_cells_folder_is_an_error(sweep: Builder, store: Store) -> None:
    first_cell(sweep, load=sweep.loads[1])
    with pytest.raises(RecordError, match="another cell"):
        run_analysis(store)


def test_a_config_that_is_not_planned_is_an_error(sweep: Builder, store: Store) -> None:
    sweep.write_spec()
    stranger = sweep.configs[0].model_copy(update={"flags": {"max_num_batched_tokens": "1"}})
    sweep.cell(stranger, sweep.loads[0], "0")
    with pytest.raises(RecordError, match="plans no such"):
        run_analysis(store)


def test_no_sweep_says_which_sweeps_lie_below(sweep: Builder, tmp_path: Path) -> None:
    sweep.write_spec()
    with pytest.raises(SweepNotFoundError, match=r"sweep=default\.toy\.01234567"):
        run_analysis(open_store(f"file://{tmp_path}/results"))


def test_versions() -> None:
    current = {"v": 1, "generation": 3}
    assert parse(StatesDocument, json.dumps(current).encode(), "states.json").generation == 3
    with pytest.raises(VersionError, match="schema version 9"):
        parse(StatesDocument, b'{"v": 9}', "states.json")
    with pytest.raises(RecordError, match=r"states\.json: generation"):
        parse(StatesDocument, b'{"v": 1}', "states.json")
    with pytest.raises(RecordError, match="versioned"):
        parse(StatesDocument, b"[]", "states.json")
    with pytest.raises(RecordError, match=r"states\.json: surprise"):
        parse(StatesDocument, b'{"v": 1, "generation": 1, "surprise": 2}', "states.json")


def test_an_older_version_is_brought_up() -> None:
    def upgrade(raw: dict[str, Any]) -> dict[str, Any]:
        return {"v": 1, "generation": raw["round"]}

    old = b'{"v": 0, "round": 4}'
    assert parse(StatesDocument, old, "states.json", {("StatesDocument", 0): upgrade}).generation == 4
