"""A whole trial: what lies in the store afterwards, and what a second attempt does with it."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx
import pyarrow.parquet as pq

from goodput.analysis.records import missing_columns
from goodput.analysis.schema.planned import Load
from goodput.runner.contract import OpenCell, ServerFacts, TrialPlan

if TYPE_CHECKING:
    from tests.integration.runner.conftest import Engine, Results, Runner

Run = Callable[..., "Runner"]
Planned = Callable[..., TrialPlan]


def test_each_cell_gets_one_result_with_all_its_documents(
    engine: Engine, run: Run, planned: Planned, results: Results, loads: list[Load]
) -> None:
    plan = planned(engine.url, results.uri, loads, warmup_max_seconds=2)
    outcome = run(plan).end()
    assert (outcome.planned, outcome.valid, outcome.lost, outcome.open) == (2, 2, 0, ())
    assert outcome.done
    for index, load in enumerate(loads):
        commit = results.commit(plan, index)
        assert commit is not None
        folder = results.folder(plan, index) / "attempt=1"
        names = {"cell.json", "requests.parquet", "server.parquet", "vllm_bench.json"}
        assert set(commit.files) == names
        assert {path.name for path in folder.iterdir()} == names | {"_COMMIT.json"}
        for name, file in commit.files.items():
            data = (folder / name).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file.size, file.sha256)
        result = results.result(plan, index)
        assert result is not None
        assert result["attempt"] == 1
        assert result["commit_sha256"] == hashlib.sha256((folder / "_COMMIT.json").read_bytes()).hexdigest()

        cell = results.cell(plan, index)
        assert (cell.outcome, cell.reason, cell.load, cell.config) == ("valid", None, load, plan.config)
        assert cell.evidence == "synthetic"
        assert cell.provenance.resolved["max_num_seqs"] == "64"
        assert cell.start.warmup_requests
        assert cell.client is not None
        assert cell.client.ceiling_events_per_second
        requests = pq.read_table(folder / "requests.parquet")
        assert missing_columns(requests) == []
        assert requests.num_rows == commit.files["requests.parquet"].rows
        assert cell.counts is not None
        assert sum(requests["in_window"].to_pylist()) == cell.counts.attempted == cell.counts.completed > 0
        samples = pq.read_table(folder / "server.parquet")
        assert samples.num_rows == commit.files["server.parquet"].rows
        assert cell.server is not None
        assert cell.server.prefix_hits == 0
        assert cell.server.generation_tokens is not None
        assert cell.server.counts_agree, cell.warnings
        assert cell.server.requests_client is not None
        assert (cell.server.requests_finished or {})["length"] >= cell.server.requests_client.finished
        assert cell.server.histograms["ttft"].count >= cell.server.requests_client.finished
        assert cell.server.names["kv_usage"] == "vllm:kv_cache_usage_perc"
        assert cell.client.descriptors_max is not None
        assert cell.client.descriptors_limit is not None
        assert 0 < cell.client.descriptors_max < cell.client.descriptors_limit
        # What was closed at the end had made a few more.
        taken = sum(tokens or 0 for tokens in requests["output_tokens"].to_pylist())
        assert taken <= cell.server.generation_tokens <= taken + 3 * (load.output_tokens or 0)
        bench = json.loads((folder / "vllm_bench.json").read_text())
        assert bench["completed"] == cell.counts.completed


def test_an_open_loop_is_measured_within_a_few_attempts(
    engines: Callable[..., Engine], run: Run, planned: Planned, results: Results
) -> None:
    """A machine that is busy with other things delays sends: such a cell is void, and the next attempt's turn."""
    load = Load(prompt_tokens=32, output_tokens=4, arrival="poisson", request_rate=8, window_seconds=1)
    for attempt in range(1, 6):
        plan = planned(engines().url, results.uri, [load], attempt=attempt)
        outcome = run(plan, folder=f"attempt-{attempt}").end()
        cell = results.cell(plan, 0, attempt)
        assert cell.reason in (None, "ScheduleLag"), cell.message
        assert cell.window is not None
        assert cell.window.seconds == 1.0
        if outcome.done:
            break
    assert outcome.done
    assert (results.result(plan, 0) or {})["attempt"] == attempt


def test_a_second_attempt_measures_nothing_that_has_a_result(
    engines: Callable[..., Engine], run: Run, planned: Planned, results: Results, loads: list[Load]
) -> None:
    first = planned(engines().url, results.uri, loads[:1])
    assert run(first, folder="first").end().done
    fresh = engines()
    second = planned(fresh.url, results.uri, loads, attempt=2)
    outcome = run(second, folder="second").end()
    assert (outcome.planned, outcome.valid) == (2, 2)
    assert results.commit(second, 0, attempt=2) is None
    assert results.commit(second, 1, attempt=2) is not None
    before = fresh.metrics()
    third = planned(fresh.url, results.uri, loads, attempt=3)
    assert run(third, folder="third").end().done
    assert _served(fresh.metrics()) == _served(before)


def test_chat_prompts_have_the_exact_length(engine: Engine, run: Run, planned: Planned, results: Results) -> None:
    load = Load(prompt_tokens=40, output_tokens=5, arrival="closed", concurrency=2, window_requests=10)
    plan = planned(engine.url, results.uri, [load], endpoint="chat", warmup_max_seconds=0.5)
    assert run(plan).end().done
    requests = pq.read_table(results.folder(plan, 0) / "attempt=1" / "requests.parquet")
    assert set(requests["prompt_tokens"].to_pylist()) == {40}


def test_the_wrong_server_fails_before_anything_is_measured(
    engine: Engine, run: Run, planned: Planned, results: Results, loads: list[Load]
) -> None:
    facts = ServerFacts(url=engine.url, order=1, expects={"max_num_seqs": "32"})
    plan = planned(engine.url, results.uri, loads, server=facts)
    runner = run(plan)
    outcome = runner.end()
    assert outcome.valid == 0
    assert outcome.open == tuple(OpenCell(load=load.id, outcome="failed", reason="ServerMismatch") for load in loads)
    assert "max_num_seqs was asked to be 32 and is 64" in runner.log.read_text()
    assert _served(engine.metrics()) == 0


def test_requests_that_do_not_fit_the_server_fail_the_trial_before_any_window(
    engines: Callable[..., Engine], run: Run, planned: Planned, results: Results, loads: list[Load]
) -> None:
    engine = engines("--max-model-len", "51")
    outcome = run(planned(engine.url, results.uri, loads)).end()
    assert outcome.open == tuple(OpenCell(load=load.id, outcome="failed", reason="RequestsTooLong") for load in loads)
    assert "is 51, too short for 32→20 (52 tokens)" in outcome.why
    assert _served(engine.metrics()) == 0
    assert not list(results.root.rglob("_COMMIT.json"))


def test_a_load_of_which_some_requests_may_not_fit_is_measured_with_a_warning(
    engines: Callable[..., Engine], run: Run, planned: Planned, results: Results, loads: list[Load]
) -> None:
    varied = loads[0].model_copy(update={"length_distribution": "normal", "length_variation": 0.1, "max_tokens": 100})
    plan = planned(engines("--max-model-len", "99").url, results.uri, [varied])
    assert run(plan).end().done
    assert "requests of ~32→20 may be longer than max_model_len (99) and be refused" in results.cell(plan, 0).warnings


def test_a_key_is_sent_and_never_written(
    engines: Callable[..., Engine], run: Run, planned: Planned, results: Results, loads: list[Load]
) -> None:
    key = "a-secret-that-must-not-leak"
    engine = engines("--api-key", key)
    facts = ServerFacts(url=engine.url, order=1, api_key_env="SERVER_KEY")
    runner = run(planned(engine.url, results.uri, loads[:1], server=facts), environment={"SERVER_KEY": key})
    assert runner.end().done
    written = [path for root in (runner.folder, results.root) for path in root.rglob("*") if path.is_file()]
    assert len(written) > 5
    assert not [path for path in written if key.encode() in path.read_bytes()]


def test_a_missing_key_is_a_plan_that_cannot_be_carried_out(
    engine: Engine, run: Run, planned: Planned, results: Results, loads: list[Load]
) -> None:
    facts = ServerFacts(url=engine.url, order=1, api_key_env="SERVER_KEY_THAT_IS_NOT_SET")
    outcome = run(planned(engine.url, results.uri, loads, server=facts)).end()
    assert {cell.reason for cell in outcome.open} == {"InvalidPlan"}


def test_status_and_metrics_are_live(
    engine: Engine, run: Run, planned: Planned, results: Results, wait: Callable[..., Any]
) -> None:
    load = Load(prompt_tokens=32, output_tokens=20, arrival="closed", concurrency=2, window_seconds=60)
    plan = planned(engine.url, results.uri, [load])
    runner = run(plan, options=["--follow"])
    status = runner.wait_step("measuring")
    assert (status.load, status.planned, status.done, status.measuring) == (load.id, 1, 0, True)
    metrics = runner.metrics()
    assert f'goodput_runner_cell_info{{attempt="1",block="0",config="{plan.config.id}"' in metrics
    assert "goodput_runner_requests_in_flight 2.0" in metrics
    wait(lambda: sample(runner.metrics(), 'goodput_runner_responses_total{status="ok"}') > 5)
    wait(lambda: sample(runner.metrics(), "goodput_runner_send_lag_seconds_count") > 5)
    ttft = (
        f'goodput_live_ttft_seconds_bucket{{config="{plan.config.id}",evidence="synthetic",le="+Inf",load="{load.id}"}}'
    )
    wait(lambda: sample(runner.metrics(), ttft) > 5)
    assert httpx.get(f"http://127.0.0.1:{runner.port}/other", trust_env=False).status_code == 404
    runner.signal(signal.SIGTERM)
    assert runner.end().valid == 0, "all of it was seen while the window ran"


def sample(metrics: str, name: str) -> float:
    """Value of one sample, 0 where it is not there."""
    return next((float(line.rsplit(" ", 1)[1]) for line in metrics.splitlines() if line.startswith(name)), 0.0)


def _served(metrics: str) -> float:
    lines = [line for line in metrics.splitlines() if line.startswith("vllm:request_success_total")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)
