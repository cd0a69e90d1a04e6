"""One quantity, several names over engine versions: the same numbers whatever the page calls them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.metric_shapes import shapes

from goodput.runner import names
from goodput.runner.snapshot import Snapshot, parse

DATA = Path(__file__).parents[2] / "data"
OLD_ITL, ITL = "vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds"
OLD_KV, KV = "vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"
OLD_HITS, HITS = "vllm:gpu_prefix_cache_hits_total", "vllm:prefix_cache_hits_total"
TPOT = "vllm:request_time_per_output_token_seconds"

READ_FROM: dict[str, tuple[str, str | None, str, str | None]] = {  # KV use, prefix hits, itl, tpot
    "v0.6": (OLD_KV, None, OLD_ITL, None),
    "v0.8": (OLD_KV, OLD_HITS, OLD_ITL, None),
    "v0.10": (KV, HITS, OLD_ITL, None),
    "v0.11": (KV, HITS, ITL, TPOT),
    "v0.13": (KV, HITS, ITL, TPOT),
}


def page(version: str) -> Snapshot:
    return parse((DATA / "vllm_metrics" / f"{version}.txt").read_text(), 0.0)


@pytest.mark.parametrize("version", READ_FROM)
def test_every_version_gives_the_same_numbers(version: str) -> None:
    snapshot, (_, prefix, _, tpot) = page(version), READ_FROM[version]
    assert (snapshot.running, snapshot.waiting, snapshot.kv_usage, snapshot.preemptions) == (3, 1, 0.25, 2)
    assert (snapshot.prompt_tokens, snapshot.generation_tokens) == (640, 80)
    assert snapshot.finished == {"stop": 1, "length": 4, "abort": 0}
    assert (snapshot.prefix_queries, snapshot.prefix_hits) == ((None, None) if prefix is None else (640, 64))
    histograms = {name: (each.count, each.mean) for name, each in snapshot.histograms.items()}
    assert histograms == {
        "ttft": (5, 0.18),
        "itl": (75, 0.008),
        **({} if tpot is None else {"tpot": (5, 0.01)}),
        "e2e": (5, 0.3),
        "queue": (5, 0.02),
        "prompt_tokens": (5, 128),
    }
    assert snapshot.histograms["ttft"].within(0.25) == 1
    assert snapshot.histograms["itl"].within(0.01) == 0.8


@pytest.mark.parametrize("version", READ_FROM)
def test_the_name_that_was_read_is_recorded(version: str) -> None:
    used = page(version).names
    found = used.get("kv_usage"), used.get("prefix_hits"), used.get("itl_histogram"), used.get("tpot_histogram")
    assert found == READ_FROM[version]


@pytest.mark.parametrize(("capture", "finished"), [("idle", 0), ("underload", 3), ("loaded", 43)])
def test_a_real_server_has_every_quantity_under_its_newest_name(capture: str, finished: int) -> None:
    snapshot = parse((DATA / "vllm_0.32" / f"metrics_{capture}.txt").read_text(), 0.0)
    used = snapshot.names
    assert (used["kv_usage"], used["prefix_hits"], used["itl_histogram"], used["tpot_histogram"]) == READ_FROM["v0.13"]
    assert set(snapshot.histograms) == {
        *("ttft", "itl", "tpot", "e2e", "queue", "prefill", "decode", "prompt_tokens", "output_tokens")
    }
    assert sum((snapshot.finished or {}).values()) == snapshot.histograms["e2e"].count == finished


def test_every_quantity_has_its_first_name_in_the_capture() -> None:
    series = {
        sample
        for shape in shapes((DATA / "vllm_0.32" / "metrics_loaded.txt").read_text()).values()
        for sample, _ in shape.series
    }
    scalars = {name for name, *_ in (*names.SUMMED.values(), *names.HIGHEST.values(), names.FINISHED, names.CACHE_INFO)}
    parts = {f"{name}_{part}" for name, *_ in names.HISTOGRAMS.values() for part in ("bucket", "sum", "count")}
    assert scalars | parts <= series


def test_a_real_servers_histograms() -> None:
    snapshot = parse((DATA / "vllm_0.32" / "metrics_loaded.txt").read_text(), 0.0)
    assert snapshot.histograms["prompt_tokens"].total == snapshot.prompt_tokens == 23356
    assert snapshot.histograms["output_tokens"].total == snapshot.generation_tokens == 4160
    assert snapshot.histograms["itl"].count == 4117, "one observation per engine output after the first"
    assert snapshot.histograms["ttft"].edges[:3] == (0.001, 0.005, 0.01)
    assert snapshot.histograms["e2e"].within(0.2) is None, "0.2 s is no edge"
