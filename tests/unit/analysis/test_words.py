from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, get_args

import pytest
import yaml

from goodput.analysis.answer import MESSAGE_BYTES, answer, fit
from goodput.analysis.best import best_yaml, vllm_flags
from goodput.analysis.configs_table import configs_table
from goodput.analysis.decide import Reason, decide, doubted
from goodput.analysis.formats import number
from goodput.analysis.goodput_table import goodput_table
from goodput.analysis.planned import PlannedCell
from goodput.analysis.report import report_html
from goodput.analysis.result import AnalysisResult
from goodput.analysis.schema.answer import AnalysisAnswer, TopRow
from goodput.analysis.schema.planned import CellKey, Config, Load, Slo
from goodput.analysis.schema.sweep import SpecDocument, StatesDocument, TrialState
from goodput.analysis.score import BlockValue, Contender, Points, Question
from goodput.analysis.words import explain, headline

EVIL = "<script>alert(1)</script>&\"'$x$"


def config(name: str) -> Config:
    return Config(
        engine="vllm",
        kind="vllm",
        flags={"max_num_batched_tokens": name, "enable_x": "true", "enable_y": "false"},
        swept={"max_num_batched_tokens": name},
        command=("vllm", "serve", "--max-num-batched-tokens", name),
    )


CONFIGS = [config(name) for name in ("512", "2048", EVIL)]
LOAD = Load(prompt_tokens=100, output_tokens=10, arrival="poisson", request_rate=4.0, window_seconds=100)


def result(
    field: list[Contender], sentinel: Points | None = None, datasets: AbstractSet[str] = frozenset(), **over: Any
) -> AnalysisResult:
    spec = SpecDocument(
        namespace="default",
        name="toy",
        uid="u",
        folder="default.toy.u",
        evidence="measured",
        spec={},
        model="m",
        configs=tuple(CONFIGS),
        loads=(LOAD,),
        blocks=("0", "1", "2"),
        reference=CONFIGS[0].id,
        slo=Slo(ttft=0.5),
    )
    question = Question(shapes={"s": (LOAD.id,)}, attainment=0.9, indifference=0.05, reference=CONFIGS[0].id)
    key = CellKey(config=CONFIGS[2].id, load=LOAD.id, block="0")
    return AnalysisResult(
        spec=spec.model_copy(update=over),
        states=StatesDocument(generation=1),
        slo=spec.slo,
        cells=(),
        planned=(PlannedCell(key, "failed", EVIL, 0),),
        decision=doubted(decide(field, question, sentinel), datasets),
    )


def contender(index: int, goods: list[int], gpu: str | None = None, attempted: int | None = None) -> Contender:
    values = {str(k): BlockValue(good, attempted or good, 100.0, gpu=gpu) for k, good in enumerate(goods)}
    return Contender(CONFIGS[index].id, {LOAD.id: values} if values else {})


BETTER, WORSE = [1200, 1190, 1205], [1000, 1010, 990]
CASES: dict[Reason, tuple[Any, ...]] = {
    "OnlyFeasible": ([contender(0, WORSE), contender(1, [1, 1], attempted=9), contender(2, [])], None),
    "Separated": ([contender(0, WORSE), contender(1, BETTER), contender(2, WORSE)], None),
    "WithinIndifference": ([contender(0, WORSE), contender(1, [1006, 1009, 991]), contender(2, [])], None),
    "TooFewBlocks": ([contender(0, [1000]), contender(1, [1200]), contender(2, [])], None),
    "IntervalTooWide": ([contender(0, WORSE), contender(1, [1100, 900, 1300]), contender(2, [])], None),
    "GpuConfounded": ([contender(0, WORSE, "G1"), contender(1, BETTER, "G2"), contender(2, [])], None),
    "NoLoadQualifies": ([contender(0, [80], attempted=100), contender(1, [10], attempted=100), contender(2, [])], None),
    "NothingMeasured": ([contender(0, []), contender(1, []), contender(2, [])], None),
    "SentinelMoved": (
        [contender(0, WORSE), contender(1, BETTER), contender(2, [])],
        {LOAD.id: {"s00": BlockValue(95, 100, 9.0), "s01": BlockValue(60, 100, 9.0)}},
    ),
    "DatasetChanged": ([contender(0, WORSE), contender(1, BETTER), contender(2, [])], None, {"a", "b"}),
}


def test_every_reason_has_a_case() -> None:
    assert set(CASES) == set(get_args(Reason))


@pytest.mark.parametrize("reason", CASES)
def test_every_verdict_is_said_in_words_and_fits_everywhere(reason: Reason) -> None:
    got = result(*CASES[reason])
    assert got.decision.reason == reason
    message = explain(got)
    assert message.endswith(".")
    assert "None" not in message
    assert got.decision.verdict in headline(got)
    assert len(answer(got).model_dump_json().encode()) <= MESSAGE_BYTES
    page = report_html(got, goodput_table(got), configs_table(got)).decode()
    assert "<script" not in page
    document = yaml.safe_load(best_yaml(got))
    assert (document["verdict"], document["best"] is None) == (got.decision.verdict, got.decision.best is None)


def test_a_score_that_the_offered_load_bounds_says_so() -> None:
    got = result(*CASES["Separated"])
    assert "keeps the SLO at the highest planned load (100→10 @ 4/s)" in explain(got)
    higher = LOAD.model_copy(update={"request_rate": 8.0})
    assert "highest planned load" not in explain(
        replace(got, spec=got.spec.model_copy(update={"loads": (LOAD, higher)}))
    )
    assert "highest planned load" not in explain(result(*CASES["NoLoadQualifies"]))


def test_a_config_that_failed_while_its_cache_was_filled_says_why() -> None:
    failed = TrialState(config=CONFIGS[0].id, block="prime", attempt=1, reason="KvCacheTooSmall")
    got = replace(result(*CASES["NothingMeasured"]), states=StatesDocument(generation=1, trials=(failed,)))
    first, second, _ = configs_table(got).select(["trials", "failure_reasons"]).to_pylist()
    assert first == {"trials": 0, "failure_reasons": "KvCacheTooSmall"}
    assert second == {"trials": 0, "failure_reasons": None}


def test_what_a_message_must_name() -> None:
    def said(reason: Reason) -> str:
        return explain(result(*CASES[reason]))

    assert "max_num_batched_tokens=2048 is better than each of 2 others" in said("Separated")
    assert "Against the reference: +1" in said("Separated")
    assert "tie break gpuSeconds" in said("WithinIndifference")
    assert "80.0 %" in said("NoLoadQualifies")
    assert "at least 2" in said("TooFewBlocks")
    assert "blocks would decide" in said("IntervalTooWide")
    assert "1 without a valid cell" in said("IntervalTooWide")


def test_labels_name_the_engine_only_where_there_are_several() -> None:
    got = result([contender(0, WORSE), contender(1, BETTER), contender(2, [])])
    assert got.name(CONFIGS[0].id) == "max_num_batched_tokens=512"
    other = CONFIGS[2].model_copy(update={"engine": "other"})
    several = replace(got, spec=got.spec.model_copy(update={"configs": (*CONFIGS[:2], other)}))
    assert several.name(CONFIGS[0].id) == "vllm max_num_batched_tokens=512"


def test_configs_that_differ_in_nothing_swept_get_their_ids() -> None:
    twins = tuple(each.model_copy(update={"swept": {}}) for each in CONFIGS)
    got = result([contender(0, WORSE), contender(1, BETTER), contender(2, [])], configs=twins)
    assert got.name(CONFIGS[0].id) == f"vllm [{CONFIGS[0].id}]"


def test_flags_are_those_of_vllm_serve() -> None:
    assert vllm_flags(CONFIGS[0]) == {"enable-x": True, "no-enable-y": True, "max-num-batched-tokens": 512}


def test_an_answer_is_cut_to_size_top_rows_first_then_logs() -> None:
    rows = tuple(TopRow(config=f"{k:010}", load="b" * 10, goodput=1 / 3, attainment=1 / 7) for k in range(10))
    logs = tuple(f"{k:010}-0-1" for k in range(300))
    full = AnalysisAnswer(generation=1, message="m" * 900, top=rows, uploaded_logs=logs)
    short = fit(full)
    assert len(short.model_dump_json().encode()) <= MESSAGE_BYTES
    assert short.top == rows[:3]
    assert short.uploaded_logs == logs[: len(short.uploaded_logs)]
    assert len(short.uploaded_logs) > 50
    assert fit(full.model_copy(update={"uploaded_logs": ()})).top == rows
    wide = fit(full.model_copy(update={"message": "→" * 3000, "uploaded_logs": ()}))
    assert len(wide.model_dump_json().encode()) <= MESSAGE_BYTES


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0"), (3.14159, "3.14"), (1234.5, "1234"), (0.012345, "0.0123"), (1e-9, "0.000000")],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert number(value) == text
