"""A folder's name is taken as it is written, whatever URIs make of its characters."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from goodput.analysis.store import open_store
from goodput.analysis.uri import existing_uri, file_path, uri_of
from goodput.operator.cli import main
from goodput.operator.spec.planview import load_file
from goodput.runner.contract import DatasetTarget
from goodput.runner.dataset.fetch import fetch

NAMES = ["plain", "c#", "is it?", "50%20", "[1]", "a:b@c", "ü ~"]
EXAMPLE = Path(__file__).parents[3] / "examples" / "quickstart.yaml"


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_is_opened_under_its_own_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in (f"one/{name}", str(tmp_path / "two" / name), name):
        open_store(uri_of(place)).below(name).put("key", b"1")
        assert (Path(place) / name / "key").read_bytes() == b"1"
        assert file_path(existing_uri(place)) == Path(place)


@pytest.mark.parametrize("name", NAMES)
def test_files_of_a_sweep_lie_in_the_current_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / name
    here.mkdir()
    monkeypatch.chdir(here)
    assert load_file(EXAMPLE).spec.results.uri == f"file://{here}/results"
    (here / "rows.jsonl").write_bytes(b"{}")
    assert fetch(DatasetTarget(kind="jsonl", uri=f"file://{here}/rows.jsonl")) == b"{}"


def test_a_folder_that_is_not_there_is_named_whole(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    done = CliRunner().invoke(main, ["analyze", str(tmp_path / "c#")])
    assert (done.exit_code, done.output) == (1, f"Error: there is no folder {tmp_path / 'c#'}\n")
