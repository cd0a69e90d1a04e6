"""The figures of the teaching models: simulated anew, the numbers are the promised ones and the pictures show them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from examples.figures.draw import MARK, Picture, Row, by_budget, curve, pictures, rows

from goodput.operator.virtual.command import simulate

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "examples" / "figures"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both sweeps simulated, from the repository's root as `make figures` does."""
    folder = tmp_path_factory.mktemp("figures")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        for name in ("latency-throughput", "chunk-budget"):
            assert simulate(FIGURES / f"{name}.yaml", out=str(folder), profile=None, say=print) == 0
    return folder


def tokens(row: Row) -> str:
    return f"{row['output_tokens_per_second']:.1f}"


def test_one_request_at_a_time_stays_at_42_4_tokens_per_second_and_batching_reaches_510_0(results: Path) -> None:
    found = rows(results, "latency-throughput")
    sequential, batching = (curve(found, "max_num_seqs", value) for value in ("1", "64"))
    assert [row["concurrency"] for row in sequential] == [1, 2, 4, 8, 16, 32]
    assert {tokens(row) for row in sequential} == {"42.4"}
    assert tokens(batching[0]) == "42.4"
    assert tokens(batching[-1]) == "510.0"
    assert all(a["output_tokens_per_second"] < b["output_tokens_per_second"] for a, b in pairwise(batching))


def test_a_larger_budget_gives_the_first_token_sooner_the_others_later_and_breaks_the_promise(results: Path) -> None:
    points = by_budget(rows(results, "chunk-budget-model"))
    assert [row["max_num_batched_tokens"] for row in points] == [1024, 2048, 4096, 8192, 16384]
    for smaller, larger in pairwise(points):
        assert smaller["ttft_mean_seconds"] > larger["ttft_mean_seconds"]
        assert smaller["tpot_mean_seconds"] < larger["tpot_mean_seconds"]
        assert smaller["output_tokens_per_second"] < larger["output_tokens_per_second"]
    assert points[-1]["attainment_ratio"] < 0.9, "the most tokens per second, and a promise that is not kept"
    assert points[0]["attainment_ratio"] >= 0.9


def test_the_pictures_in_the_documents_are_those_of_the_models(results: Path) -> None:
    """By their texts: positions depend on the fonts of the machine that draws."""
    for picture in pictures(results):
        kept = Picture(picture.name, (ROOT / "docs" / "figures" / picture.name).read_text(encoding="utf-8"))
        assert texts(kept) == texts(picture), "make figures writes them anew"
        assert MARK in " ".join(texts(picture))


def texts(picture: Picture) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.svg)
