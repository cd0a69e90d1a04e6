"""Every kind of workload through a whole trial: dataset, lengths, records, and what is refused before a window."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.integration.runner.proxy import Proxy

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import DatasetTarget, TrialPlan
from goodput.runner.tokens import words

if TYPE_CHECKING:
    from tests.integration.runner.conftest import Engine, Results, Runner

Planned = Callable[..., TrialPlan]
Run = Callable[..., "Runner"]
WORDS = words()[:20]


def load(**changes: Any) -> Load:
    closed = {"arrival": "closed", "concurrency": 2, "window_requests": 12}
    return Load.model_validate({**closed, **changes})


def text(number: int, count: int) -> str:
    return " ".join(WORDS[(number * 7 + word * (number + 1)) % len(WORDS)] for word in range(count))


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> DatasetTarget:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return DatasetTarget(kind="jsonl", uri=f"file://{path}")


def write_trace(path: Path, requests: int, per_second: float) -> DatasetTarget:
    """Of the form of the public Azure traces, with their seven decimals."""
    lines = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    for number in range(requests):
        minutes, seconds = divmod(number / per_second, 60)
        lines.append(f"2023-11-16 18:{int(minutes):02}:{seconds:010.7f},{20 + number % 50},{1 + number % 5}")
    path.write_text("\n".join(lines) + "\n")
    return DatasetTarget(kind="trace", uri=f"file://{path}")


def test_shared_prefixes_are_hit_as_often_as_planned(
    engine: Engine, run: Run, planned: Planned, results: Results
) -> None:
    """One request at a time: whoever comes second to a prefix finds it computed."""
    shape = {"prompt_tokens": 96, "output_tokens": 3, "prefix_groups": 3, "prefix_tokens": 72}
    plan = planned(engine.url, results.uri, [load(**shape, concurrency=1, window_requests=40)])
    assert run(plan).end().done
    cell = results.cell(plan, 0)
    assert cell.server is not None
    assert cell.asked.prefix_hit_ratio == pytest.approx(64 / 96, abs=0.06), "four whole blocks, but for the first three"
    assert cell.server.prefix_hit_ratio == pytest.approx(cell.asked.prefix_hit_ratio, abs=0.01)
    assert cell.warnings == ()


def test_varied_lengths_are_kept_by_each_request(engine: Engine, run: Run, planned: Planned, results: Results) -> None:
    varied = {"length_distribution": "lognormal", "length_variation": 0.6, "max_tokens": 400}
    one = load(prompt_tokens=100, output_tokens=8, **varied)
    plan = planned(engine.url, results.uri, [one], warmup_max_seconds=0.3)
    assert run(plan).end().done
    cell = results.cell(plan, 0)
    requests = pq.read_table(results.folder(plan, 0) / "attempt=1" / "requests.parquet")
    window = requests.filter(requests["in_window"])
    prompts, outputs = window["prompt_tokens"].to_pylist(), window["output_tokens"].to_pylist()
    assert len(set(prompts)) > 8
    assert cell.asked.prompt_tokens_mean == pytest.approx(sum(prompts) / len(prompts))
    assert (cell.asked.prompt_tokens_max, cell.asked.output_tokens_max) == (max(prompts), max(outputs))


def test_json_lines_are_sent_and_a_short_file_says_so(
    engine: Engine, run: Run, planned: Planned, results: Results, tmp_path: Path
) -> None:
    rows: list[dict[str, Any]] = [{"prompt": text(n, 20 + n), "output_tokens": 2 + n % 4} for n in range(9)]
    rows += [{"prompt_token_ids": list(range(100 + n, 140 + n)), "max_tokens": 3} for n in range(9)]
    rows.append({"prompt": text(1, 500), "output_tokens": 3})
    target = write_jsonl(tmp_path / "requests.jsonl", rows)
    loads = [load(dataset="jsonl", dataset_uri="file://x", max_tokens=100, concurrency=n) for n in (1, 2)]
    plan = planned(engine.url, results.uri, loads, dataset=target, warmup_max_seconds=0.3)
    assert run(plan).end().done
    cells = [results.cell(plan, index) for index in range(2)]
    for cell in cells:
        facts = cell.provenance.dataset
        assert facts is not None
        assert (facts.uri, facts.rows, facts.unusable_rows, len(facts.sha256)) == (target.uri, 19, 0, 64)
        assert cell.asked.repeated_requests
        assert any(warning.startswith("RowsRepeated: ") for warning in cell.warnings)
    assert sum(cell.asked.left_out_rows or 0 for cell in cells) == 1


def test_texts_are_tokenized_before_the_opening_snapshot(
    engine: Engine, run: Run, planned: Planned, results: Results, tmp_path: Path
) -> None:
    """Between the reset of the prefix cache, which comes before the snapshot, and the load, nothing is asked."""
    rows = [{"prompt": text(n, 20 + n), "output_tokens": 2} for n in range(60)]
    target = write_jsonl(tmp_path / "requests.jsonl", rows)
    loads = [load(dataset="jsonl", dataset_uri="file://x", concurrency=n) for n in (1, 2)]
    with Proxy(engine.url) as proxy:
        plan = planned(proxy.url, results.uri, loads, dataset=target, warmup_max_seconds=0.3)
        assert run(plan).end().done
    assert proxy.asked.count("/tokenize") > len(rows) / 2
    _, *resets = "\n".join(proxy.asked).split("/reset_prefix_cache")
    assert len(resets) >= 2, "one for each cell at least"
    assert all("/tokenize" not in each.partition("/v1/completions")[0] for each in resets)


def test_sharegpt_is_sent_as_chats_of_the_counted_length(
    engine: Engine, run: Run, planned: Planned, results: Results, tmp_path: Path
) -> None:
    turns = [
        [{"from": "human", "value": text(n, 10 + n)}, {"from": "gpt", "value": text(n + 50, 2 + n % 3)}]
        for n in range(40)
    ]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"id": str(n), "conversations": each} for n, each in enumerate([*turns, []])]))
    target = DatasetTarget(kind="sharegpt", uri=f"file://{path}")
    one = load(dataset="sharegpt", dataset_uri="file://x", max_tokens=200)
    plan = planned(engine.url, results.uri, [one], dataset=target, endpoint="chat")
    assert run(plan).end().done
    cell = results.cell(plan, 0)
    assert cell.counts is not None
    assert cell.counts.completed == cell.counts.attempted == 12
    assert (cell.asked.repeated_requests, cell.asked.left_out_rows) == (0, 0)
    assert cell.provenance.dataset is not None
    assert (cell.provenance.dataset.rows, cell.provenance.dataset.unusable_rows) == (40, 1)
    requests = pq.read_table(results.folder(plan, 0) / "attempt=1" / "requests.parquet")
    reported = requests.filter(requests["in_window"])["prompt_tokens"].to_pylist()
    assert sum(reported) / len(reported) == pytest.approx(cell.asked.prompt_tokens_mean)


def test_a_trace_is_replayed_at_its_times_and_lengths(
    engines: Callable[..., Engine], run: Run, planned: Planned, results: Results, tmp_path: Path
) -> None:
    """A machine that is busy with other things delays sends: such a cell is void, and the next attempt's turn."""
    target = write_trace(tmp_path / "trace.csv", 60, 2.0)
    replay = {"dataset": "trace", "dataset_uri": "file://x", "max_tokens": 100, "arrival": "replay", "speed": 10}
    one = Load.model_validate({**replay, "window_seconds": 2})
    for attempt in range(1, 6):
        plan = planned(engines().url, results.uri, [one], dataset=target, attempt=attempt)
        outcome = run(plan, folder=f"attempt-{attempt}").end()
        cell = results.cell(plan, 0, attempt)
        assert cell.reason in (None, "ScheduleLag"), cell.message
        rows = pq.read_table(results.folder(plan, 0) / f"attempt={attempt}" / "requests.parquet").to_pylist()
        window = [row for row in rows if row["in_window"]]
        assert [row["request"] for row in window] == list(range(6, 46))
        for row in window:
            number = row["request"]
            assert row["planned_s"] == pytest.approx(number * 0.05)
            assert (row["prompt_tokens"], row["output_tokens"]) == (20 + number % 50, 1 + number % 5)
        if outcome.done:
            break
    assert outcome.done


def test_a_trace_that_is_too_short_is_refused_before_any_window(
    engine: Engine, run: Run, planned: Planned, results: Results, tmp_path: Path
) -> None:
    target = write_trace(tmp_path / "trace.csv", 20, 2.0)
    replay = {"dataset": "trace", "dataset_uri": "file://x", "max_tokens": 100, "arrival": "replay", "speed": 10}
    runner = run(
        planned(engine.url, results.uri, [Load.model_validate({**replay, "window_seconds": 2})], dataset=target)
    )
    assert [(cell.outcome, cell.reason) for cell in runner.end().open] == [("failed", "NoSchedule")]
    assert "the trace lasts 0.95 s at 10 times its speed (20 requests)" in runner.log.read_text()


def test_a_bad_line_is_refused_before_any_window(
    engine: Engine, run: Run, planned: Planned, results: Results, tmp_path: Path
) -> None:
    target = write_jsonl(tmp_path / "r.jsonl", [{"prompt": "a", "output_tokens": 1}, {"prompt": "b"}])
    plan = planned(
        engine.url, results.uri, [load(dataset="jsonl", dataset_uri="file://x", max_tokens=9)], dataset=target
    )
    runner = run(plan)
    assert [(cell.outcome, cell.reason) for cell in runner.end().open] == [("failed", "InvalidDataset")]
    assert "line 2: has 0 of output_tokens and max_tokens; give one of them" in runner.log.read_text()
