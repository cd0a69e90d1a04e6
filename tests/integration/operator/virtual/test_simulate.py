"""`goodput simulate`: the same plan in virtual time, the same bytes every time, loudly synthetic."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests.integration.operator.virtual.conftest import SPEC

from goodput.analysis.analyze import judge_sweep
from goodput.analysis.read import read_states
from goodput.analysis.store import open_store
from goodput.operator.cli import main
from goodput.operator.local.lock import locked_folder
from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.planview import load_file
from goodput.operator.virtual.command import prepare, simulate

Write = Callable[..., Path]
GPU = {"name": "gpu", "kind": "vllm", "image": "vllm/vllm-openai:v0.32.0"}
RUNNING = {"name": "x", "kind": "external", "external": {"url": "http://x"}}


def simulated(file: Path, out: Path, profile: str | None = None) -> tuple[int, str, Path]:
    """Exit code, what was said, and the sweep's folder."""
    said: list[str] = []
    code = simulate(file, out=str(out), profile=profile, say=said.append)
    return code, "\n".join(said), next(out.iterdir())


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_two_runs_write_the_same_bytes_and_a_second_one_over_the_first_too(write: Write, tmp_path: Path) -> None:
    code, _, folder = simulated(write(), tmp_path / "one")
    first = hashes(folder)
    assert code == 0
    assert first == hashes(simulated(write(), tmp_path / "two")[2]) == hashes(simulated(write(), tmp_path / "one")[2])
    names = {name.rsplit("/", 1)[-1] for name in first}
    assert {"requests.parquet", "server.parquet", "cell.json", "vllm_bench.json", "_COMMIT.json"} <= names
    assert {"_RESULT.json", "trial.json", "spec.json", "states.json", "best.yaml", "report.html"} <= names
    assert {f"tables/{table}.{kind}" for table in ("goodput", "configs", "cells") for kind in ("csv", "parquet")} <= {
        *first
    }


def test_a_second_run_into_the_same_folder_at_the_same_time_is_refused(write: Write, tmp_path: Path) -> None:
    file, out = write(), tmp_path / "out"
    _, _, folder = simulated(file, out)
    before = hashes(folder)
    with locked_folder(folder):
        done = CliRunner().invoke(main, ["simulate", str(file), "--out", str(out)])
        assert done.exit_code == 1
        assert f"another process writes to {folder} now; wait for its end, or name another folder" in done.output
        assert simulated(file, tmp_path / "elsewhere")[0] == 0
    assert hashes(folder) == before, "the first run's files are left alone"
    assert simulated(file, out)[0] == 0


def test_a_smaller_run_leaves_nothing_of_a_larger_one(write: Write, tmp_path: Path) -> None:
    small = write(budget={"maxTrials": 1})
    _, _, fresh = simulated(small, tmp_path / "fresh")
    simulated(write(), tmp_path / "used")
    _, _, again = simulated(write(budget={"maxTrials": 1}), tmp_path / "used")
    assert fresh.name == again.name
    assert hashes(again) == hashes(fresh)


def test_another_seed_gives_other_records(write: Write, tmp_path: Path) -> None:
    _, _, one = simulated(write(), tmp_path / "one")
    other = write(workload={**SPEC["workload"], "seed": 1})
    _, _, two = simulated(other, tmp_path / "two")
    tables = {value for name, value in hashes(two).items() if name.endswith("requests.parquet")}
    assert tables.isdisjoint(hashes(one).values())


def test_ids_are_those_of_a_real_run_and_everything_says_that_it_is_none(write: Write, tmp_path: Path) -> None:
    file = write()
    real = load_file(file)
    _, said, folder = simulated(file, tmp_path / "out")
    store = open_store(f"file://{folder}")
    states = read_states(store)
    assert states is not None
    result = judge_sweep(store, states)
    assert [config.id for config in result.spec.configs] == [config.id for config in real.configs]
    assert [load.id for load in result.spec.loads] == [step.load.id for step in real.loads]
    assert (result.spec.namespace, result.spec.evidence) == ("virtual", "synthetic")
    assert folder.name != f"sweep={real.folder}"
    best = (folder / "best.yaml").read_text()
    assert best.startswith("# SYNTHETIC")
    assert "\nsimulated: nothing was run; step times of profile teaching" in best
    assert len(result.cells) == real.planned_cells == 4
    for cell in result.cells:
        document = cell.document
        assert document.evidence == "synthetic"
        assert document.provenance.simulated is not None
        assert document.provenance.simulated.startswith("nothing was run; step times of profile teaching")
        assert document.client is not None
        assert document.client.stamp_source == "virtual"
        assert document.server is not None
        assert document.server.counts_agree
        assert document.server.complete
        assert document.window is not None
        assert document.window.started_unix < 1000
    assert "SYNTHETIC virtual time, nothing is run or measured" in said.splitlines()[0]
    assert "VIRTUAL TIME" in (folder / "report.html").read_text()
    assert "nothing was run" in (folder / "tables" / "configs.csv").read_text()
    assert {row["state"] for row in pq.read_table(folder / "tables" / "cells.parquet").to_pylist()} == {"measured"}


def test_real_servers_are_simulated_only_on_hardware_that_is_named(write: Write, tmp_path: Path) -> None:
    file = write(engines=[{**GPU, "args": {"max_model_len": 4096, "dtype": "bfloat16"}}])
    with pytest.raises(SpecError, match="--profile NAME"):
        prepare(file, None)
    code, said, folder = simulated(file, tmp_path / "out", "h100-llama-3-8b")
    assert code == 0
    assert "predicted as if these flags changed nothing: dtype" in said
    assert "SYNTHETIC" in said
    cell = json.loads(next(folder.rglob("cell.json")).read_text())
    assert cell["evidence"] == "synthetic"
    assert "h100-llama-3-8b" in cell["provenance"]["simulated"]
    assert "flags without a model: dtype" in cell["provenance"]["simulated"]
    assert (cell["start"]["seconds"], cell["start"]["compile_cache"]) == (120.0, "miss")


def test_a_shared_compile_cache_has_what_an_earlier_start_left(write: Write, tmp_path: Path) -> None:
    cache = {"mode": "shared", "claimName": "compiled"}
    file = write(engines=[{**GPU, "args": {"max_model_len": 4096}, "compileCache": cache}])
    _, _, folder = simulated(file, tmp_path / "out", "h100-llama-3-8b")
    documents = [json.loads(path.read_text()) for path in folder.rglob("cell.json")]
    starts = {(document["key"]["block"], document["start"]["compile_cache"]) for document in documents}
    assert starts == {("0", "miss"), ("1", "hit")}


def test_a_compile_cache_that_is_filled_first_leaves_no_measured_start_cold(write: Write, tmp_path: Path) -> None:
    cache = {"mode": "prime", "claimName": "compiled"}
    file = write(engines=[{**GPU, "args": {"max_model_len": 4096}, "compileCache": cache}])
    _, _, folder = simulated(file, tmp_path / "out", "h100-llama-3-8b")
    documents = [json.loads(path.read_text()) for path in folder.rglob("cell.json")]
    starts = {(document["key"]["block"], document["start"]["compile_cache"]) for document in documents}
    assert starts == {("0", "hit"), ("1", "hit")}
    keys = len({document["key"]["config"] for document in documents})
    assert min(document["start"]["order"] for document in documents) == keys + 1


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ({"configs": {"grid": {"dtype": ["float16", "bfloat16"]}}, "engines": [GPU]}, "dtype: has no model"),
        ({"engines": [{**GPU, "args": {"tensor_parallel_size": 2}}]}, "one device"),
        (
            {"engines": [{"name": "x", "kind": "external", "external": {"url": "http://x"}}], "configs": {}},
            "cannot be simulated",
        ),
        ({"engines": [{"name": "sim", "kind": "simulated", "profile": "no-such"}]}, "unknown profile"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_the_reason(
    write: Write, parts: dict[str, object], match: str
) -> None:
    profile = "teaching" if "vllm" in str(parts) else None
    with pytest.raises(SpecError, match=match):
        prepare(write(**parts), profile)


@pytest.mark.parametrize(
    ("command", "args"), [("plan", {}), ("run", {}), ("simulate", {}), ("plan", {"max_model_len": "auto"}),
                          ("plan", {"max_model_len": "-1"})]
)  # fmt: skip
def test_requests_that_the_profiles_model_length_has_no_room_for_are_refused(
    write: Write, command: str, args: dict[str, str]
) -> None:
    work = {**SPEC["workload"], "promptTokens": [64, 16_380]}
    engine = {"name": "sim", "kind": "simulated", "args": args}
    done = CliRunner().invoke(main, [command, str(write(workload=work, engines=[engine]))])
    assert done.exit_code == 2
    assert (
        'spec.workload: "16388 tokens": prompt and output of load 16380→8 do not fit max_model_len (16384, of profile '
        "teaching) of config sim max_num_batched_tokens=256; set its max_model_len to 16388, or shorten the requests"
    ) in done.output


def test_a_flag_or_another_profile_makes_room(write: Write) -> None:
    work = {**SPEC["workload"], "promptTokens": [9000]}
    engine = {"name": "sim", "kind": "simulated"}
    with pytest.raises(SpecError, match="of profile h100-llama-3-8b"):
        prepare(write(workload=work, engines=[engine]), "h100-llama-3-8b")
    assert prepare(write(workload=work, engines=[engine]), None)
    longer = {**engine, "args": {"max_model_len": 9008}}
    assert prepare(write(workload=work, engines=[longer]), "h100-llama-3-8b")


def test_a_config_that_would_not_start_fails_as_a_real_one(write: Write, tmp_path: Path) -> None:
    grid = {"list": [{"max_num_batched_tokens": 1024}, {"max_num_batched_tokens": 1024, "num_gpu_blocks_override": 8}]}
    code, said, folder = simulated(write(configs=grid), tmp_path / "out")
    assert code == 0
    assert "PartiallyFailed" in said
    assert "KvCacheTooSmall" in (folder / "tables" / "cells.csv").read_text()


def test_the_budget_ends_a_simulated_sweep_too(write: Write, tmp_path: Path) -> None:
    _, said, folder = simulated(write(budget={"maxTrials": 3}), tmp_path / "out")
    cells = pq.read_table(folder / "tables" / "cells.parquet").to_pylist()
    assert sorted(cell["state"] for cell in cells) == ["measured", "measured", "measured", "not_run"]
    assert "PartiallyFailed" in said


def test_the_command_refuses_with_exit_code_2(write: Write) -> None:
    answer = CliRunner().invoke(main, ["simulate", str(write(engines=[GPU]))])
    assert answer.exit_code == 2
    assert "--profile NAME" in answer.output


@pytest.mark.parametrize("place", ["ftp://host/x", "s3://", "file://"])
def test_no_place_or_one_of_an_unknown_kind_is_refused_in_words(write: Write, place: str) -> None:
    done = CliRunner().invoke(main, ["simulate", str(write()), "--out", place])
    assert done.exit_code == 2
    assert f'--out: "{place}": names no place of a known scheme; name a folder' in done.output


@pytest.mark.parametrize("command", ["plan", "run", "simulate"])
def test_a_profile_that_is_not_there_is_refused_before_anything_starts(write: Write, command: str) -> None:
    (engine,) = SPEC["engines"]
    done = CliRunner().invoke(main, [command, str(write(engines=[{**engine, "profile": "teachin"}]))])
    assert done.exit_code == 2
    assert 'spec.engines[0].profile: "teachin": unknown profile' in done.output
    assert "known are" in done.output
