from __future__ import annotations

from pathlib import Path

import pytest

from goodput.engines.simulated import arguments
from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.planview import load_file, read_document, render_plan
from goodput.operator.spec.resolve import resolve

ROOT = Path(__file__).parents[4]
FILES = sorted([*ROOT.glob("examples/*.yaml"), *ROOT.glob("manifests/samples/*.yaml")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_example_and_sample_resolves_at_both_doors(path: Path) -> None:
    local = load_file(path)
    assert local.configs
    assert render_plan(local)
    if not local.spec.results.uri.startswith("file://"):
        in_cluster = resolve(read_document(path), namespace="bench", uid="0123456789abcdef")
        assert in_cluster.configs == local.configs
        assert in_cluster.loads == local.loads
        assert [in_cluster.order(block) for block in in_cluster.blocks] == [local.order(b) for b in local.blocks]


def test_the_quickstart_is_as_small_as_it_says() -> None:
    sweep = load_file(ROOT / "examples/quickstart.yaml")
    assert (len(sweep.configs), len(sweep.loads), sweep.blocks) == (4, 2, ("0", "1"))
    assert sweep.planned_cells == 16
    assert sweep.evidence == "synthetic"
    assert not sweep.sentinel


def test_a_plan_shows_every_config_with_its_command_and_every_cell() -> None:
    text = render_plan(load_file(ROOT / "examples/gpu.yaml"))
    assert "4 configs x 4 loads x 3 blocks = 48 cells in 12 server starts" in text
    assert (
        "vllm serve Qwen/Qwen2.5-1.5B-Instruct --served-model-name Qwen/Qwen2.5-1.5B-Instruct --port 8000 "
        "--shutdown-timeout 20 --max-model-len 8192 --max-num-batched-tokens 4096\n" in text
    )
    assert text.count("not_run") == 48
    assert text.count("(reference)") == 1
    assert "GPU hours" in text


def test_a_simulated_plan_says_that_it_is_synthetic() -> None:
    text = render_plan(load_file(ROOT / "examples/quickstart.yaml"))
    assert text.startswith("sweep quickstart (synthetic)")
    assert "goodput-engine-simulated teaching-model --served-model-name teaching-model --profile teaching" in text
    assert "GPU hours" not in text


def test_relative_results_are_relative_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ROOT / "examples/quickstart.yaml"
    monkeypatch.chdir(tmp_path)
    sweep = load_file(file)
    assert sweep.spec.results.uri == f"file://{tmp_path}/results"
    assert sweep.folder == resolve(read_document(file)).folder


def test_absolute_results_stay(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    text = (ROOT / "examples/quickstart.yaml").read_text()
    path.write_text(text.replace("file://./results", "file:///srv/results"))
    assert load_file(path).spec.results.uri == "file:///srv/results"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1", "is no YAML"),
        ("", "holds 0 documents, not one BenchmarkSweep"),
        ("a: 1\n---\nb: 2\n", "holds 2 documents, not one BenchmarkSweep"),
        ("- 1\n", "not one BenchmarkSweep"),
        ("spec: {a: 1, a: 2}\n", "key 'a' is written twice"),
        ("a: \x00", "is no YAML"),
    ],
)
def test_a_file_that_is_no_sweep(text: str, line: str, tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=r"sweep\.yaml: ") as refused:
        load_file(path)
    assert line in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none.yaml: cannot be read: No such file or directory; name a file"):
        load_file(tmp_path / "none.yaml")


def test_anchors_and_merges_are_read(tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text("base: &base {a: 1, b: 2}\nother: {<<: *base, b: 3}\n")
    assert read_document(path)["other"] == {"a": 1, "b": 3}


@pytest.mark.parametrize("name", ["quickstart.yaml", "cluster-quickstart.yaml"])
def test_the_simulated_engine_takes_the_commands(name: str) -> None:
    for config in load_file(ROOT / "examples" / name).configs:
        taken = arguments.parse(config.command[1:])
        assert taken.max_num_batched_tokens == int(config.flags["max_num_batched_tokens"])
        assert taken.served_model_name == ["teaching-model"]
