from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goodput.analysis.schema.planned import Load, Stage
from goodput.operator.spec.errors import SpecError
from goodput.operator.spec.grid import count
from goodput.operator.spec.parse import parse_spec
from goodput.operator.spec.planview import with_absolute_files
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep, TrialId
from goodput.operator.trialplan import trial_plan
from goodput.runner.contract import DatasetTarget, ServerFacts

Build = Callable[..., dict[str, Any]]
TRACE = {"dataset": "trace", "datasetUri": "s3://bench/t.csv", "maxTokens": 8192}


@pytest.fixture
def loads(sweep: Build) -> Callable[..., list[Load]]:
    def build(**work: Any) -> list[Load]:
        document = sweep(workload=work)
        found = [step.load for step in resolve(document).loads]
        assert count(parse_spec(document)).loads == len(found)
        return found

    return build


def planned(sweep: Sweep) -> DatasetTarget | None:
    facts = ServerFacts(url="http://x", order=1)
    return trial_plan(sweep, TrialId("0", sweep.configs[0].id, 1), facts).dataset


def test_the_axes_of_each_kind(loads: Callable[..., list[Load]]) -> None:
    assert [load.amount for load in loads(promptTokens=[8, 4], requestRate=[2, 1])] == [1, 2, 1, 2]
    replays = loads(**TRACE, arrival="replay", speed=[10, 1])
    assert [(load.speed, load.request_rate, load.prompt_tokens) for load in replays] == [
        (1, None, None),
        (10, None, None),
    ]
    (burst,) = loads(arrival="burst", window={"requests": 9})
    assert (burst.arrival, burst.window_requests, burst.window_seconds) == ("burst", 9, None)
    (stages,) = loads(stages=[{"duration": "10s", "rate": 2}, {"duration": "1m", "rate": 2, "endRate": 4}])
    assert stages.stages == (Stage(duration_seconds=10, rate=2), Stage(duration_seconds=60, rate=2, end_rate=4))
    assert (stages.arrival, stages.window_seconds, stages.highest_rate) == ("poisson", 70, 4)


def test_what_existed_before_has_the_same_id(loads: Callable[..., list[Load]]) -> None:
    (load,) = loads(promptTokens=[2048], outputTokens=[64], requestRate=[4], window={"duration": "60s"})
    assert load.id == "c6f829b65f"


@pytest.mark.parametrize(
    ("work", "fits"),
    [
        ({"requestRate": [1], "promptTokens": [4000], "outputTokens": [96]}, True),
        ({"requestRate": [1], "promptTokens": [4000], "outputTokens": [97]}, False),
        ({"requestRate": [1], "lengths": {"distribution": "uniform", "variation": 0.5}, "promptTokens": [2000]}, True),
        ({"requestRate": [1], "lengths": {"distribution": "uniform", "variation": 0.5}, "promptTokens": [2200]}, False),
        ({"requestRate": [1], **TRACE, "maxTokens": 4096}, True),
        ({"requestRate": [1], **TRACE, "maxTokens": 4097}, False),
    ],
)
def test_the_longest_request_must_fit_the_server(work: dict[str, Any], fits: bool, sweep: Build) -> None:
    engine = {"name": "vllm", "kind": "vllm", "image": "i", "args": {"max_model_len": 4096}}
    document = sweep(workload=work, engines=[engine], configs=None)
    if fits:
        assert resolve(document).loads
    else:
        with pytest.raises(SpecError, match=r"do not fit max_model_len \(4096\)"):
            resolve(document)


def test_means_above_the_limit_are_refused(sweep: Build) -> None:
    work = {"requestRate": [1], "lengths": {"distribution": "normal", "variation": 0.1}, "maxTokens": 500}
    with pytest.raises(SpecError, match=r"spec\.workload\.maxTokens: 500: is less than the longest means .* \(640\)"):
        resolve(sweep(workload=work))


def test_a_burst_has_no_lead_in_and_long_to_end(sweep: Build) -> None:
    work = {"arrival": "burst", "window": {"requests": 6400}}
    found = resolve(sweep(workload=work, slo={"e2e": "4s"}))
    (step,) = found.loads
    assert (step.lead_in_seconds, step.window_seconds, step.drain_seconds) == (0, 400, 3200)
    assert found.trial_deadline_seconds > 4000


def test_what_varies_plans_for_a_long_request_not_for_the_longest(sweep: Build) -> None:
    slo = {"ttft": "1s", "tpot": "100ms"}
    (exact,) = resolve(sweep(workload={"requestRate": [1], "outputTokens": [101]}, slo=slo)).loads
    lengths = {"distribution": "uniform", "variation": 0.5}
    (varied,) = resolve(sweep(workload={"requestRate": [1], "outputTokens": [101], "lengths": lengths}, slo=slo)).loads
    (trace,) = resolve(sweep(workload={"requestRate": [1], **TRACE}, slo=slo)).loads
    assert (exact.lead_in_seconds, varied.lead_in_seconds, trace.lead_in_seconds) == (55, 105.5, 260.5)


def test_the_dataset_is_reached_as_the_results_are(sweep: Build) -> None:
    work = {"requestRate": [1], **TRACE}
    results = {"uri": "s3://bench/sweeps", "endpoint": "http://minio:9000", "region": "eu"}
    dataset = planned(resolve(sweep(workload=work, results=results)))
    assert dataset == DatasetTarget(kind="trace", uri="s3://bench/t.csv", endpoint="http://minio:9000", region="eu")
    other = planned(resolve(sweep(workload={**work, "datasetUri": "https://x/t.csv"}, results=results)))
    assert other == DatasetTarget(kind="trace", uri="https://x/t.csv")
    assert planned(resolve(sweep(workload={"requestRate": [1]}))) is None


def test_a_relative_file_is_found_from_where_the_command_runs(sweep: Build, tmp_path: Any) -> None:
    work = {"requestRate": [1], **TRACE, "datasetUri": "file://./data/t.csv"}
    found = resolve(sweep(workload=work))
    dataset = planned(with_absolute_files(found, tmp_path))
    assert dataset is not None
    assert dataset.uri == f"file://{tmp_path}/data/t.csv"
    assert with_absolute_files(found, tmp_path).loads == found.loads, "identity keeps it as written"
