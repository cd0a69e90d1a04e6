from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.analysis import cells
from goodput.analysis.metrics import Requests, good_mask, judge, rate, ratio, request_metrics
from goodput.analysis.records import REQUESTS, completed, missing_columns
from goodput.analysis.schema.planned import Slo

SLO = Slo(ttft=0.5, tpot=0.02)


def row(**over: Any) -> dict[str, Any]:
    """A completed request: TTFT 0.1 s after sending, then 11 tokens 10 ms apart."""
    return {
        "request": 0,
        "planned_s": 1.0,
        "sent_s": 1.0,
        "first_s": 1.1,
        "last_s": 1.2,
        "end_s": 1.2,
        "prompt_tokens": 100,
        "output_tokens": 11,
        "token_source": "usage",
        "outcome": "completed",
        "reason": None,
        "in_window": True,
        "itl_max_s": 0.01,
        "itl_sum_s": 0.1,
        "itl_count": 10,
        "stamp_source": "kernel",
        "coalesced_reads": 0,
        "answer_s": None,
    } | over


def frame(*rows: dict[str, Any]) -> Requests:
    return request_metrics(pa.Table.from_pylist(list(rows), schema=REQUESTS))


def is_good(slo: Slo = SLO, *, open_loop: bool = True, **over: Any) -> bool:
    return bool(good_mask(frame(row(**over)), slo, open_loop=open_loop)[0])


def test_latencies_by_hand() -> None:
    got = frame(row(planned_s=0.9))
    assert list(got.ttft_s) == pytest.approx([0.1])
    assert list(got.tpot_s) == pytest.approx([0.01])
    assert list(got.e2e_s) == pytest.approx([0.2])
    assert list(got.scheduled_ttft_s) == pytest.approx([0.2])
    assert list(got.scheduled_e2e_s) == pytest.approx([0.3])


def test_one_token_has_no_tpot_and_does_not_fail_it() -> None:
    one: dict[str, Any] = {"output_tokens": 1, "last_s": 1.1, "itl_max_s": None, "itl_count": 0}
    assert math.isnan(frame(row(**one)).tpot_s[0])
    assert is_good(Slo(ttft=0.5, tpot=0.02, itl=0.02), **one)
    assert not is_good(Slo(ttft=0.05, tpot=0.02), **one)


@pytest.mark.parametrize("outcome", ["failed", "incomplete", "not_sent"])
def test_only_completed_requests_are_good(outcome: str) -> None:
    assert is_good()
    assert not is_good(outcome=outcome)
    assert not is_good(Slo(), outcome=outcome)


def test_requests_of_lead_in_and_tail_are_not_judged() -> None:
    assert not is_good(in_window=False)
    assert judge(frame(row(in_window=False)), SLO, open_loop=True).attempted == 0


def test_open_loop_is_judged_from_the_planned_time() -> None:
    late: dict[str, Any] = {"planned_s": 0.55}  # sent 450 ms late: TTFT 0.1 s, but the user waited 0.55 s
    assert is_good(open_loop=False, **late)
    assert not is_good(open_loop=True, **late)


@pytest.mark.parametrize(
    ("limit", "over"),
    [
        ("ttft", {"first_s": 1.6, "last_s": 1.7}),
        ("tpot", {"last_s": 1.4}),
        ("itl", {"itl_max_s": 0.2}),
        ("e2e", {"last_s": 3.2, "output_tokens": 1000}),
    ],
)
def test_each_limit_judges_alone(limit: str, over: dict[str, Any]) -> None:
    limits = {"ttft": 0.5, "tpot": 0.02, "itl": 0.1, "e2e": 2.0}
    assert not is_good(Slo.model_validate({limit: limits[limit]}), **over)
    rest = {name: value for name, value in limits.items() if name != limit}
    assert is_good(Slo.model_validate(rest), **over)


def test_a_limit_is_met_at_its_very_value() -> None:
    assert is_good(Slo(ttft=0.5), planned_s=1.0, first_s=1.5, last_s=1.6)


def test_what_cannot_be_judged_is_not_good_and_is_counted() -> None:
    got = judge(frame(row(itl_max_s=None), row()), Slo(itl=0.1), open_loop=True)
    assert (got.good, got.slow, got.unjudged) == (1, 1, 1)


def test_counts_add_up() -> None:
    rows = [row(), row(first_s=1.9, last_s=2.0), row(in_window=False)]
    rows += [row(outcome=name) for name in ("failed", "incomplete", "not_sent", "not_sent")]
    got = judge(frame(*rows), SLO, open_loop=True)
    assert (got.attempted, got.good, got.slow, got.failed, got.incomplete, got.not_sent) == (6, 1, 1, 1, 1, 2)
    assert got.completed == 2


def test_an_empty_cell_counts_nothing_and_divides_by_nothing() -> None:
    got = judge(frame(), SLO, open_loop=True)
    assert got.attempted == got.good == got.slow == 0
    assert ratio(got.good, got.attempted) is None
    assert rate(got.good, 0.0) is None
    assert rate(None, 3.0) is None
    assert rate(0, 4.0) == 0


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5)), max_size=20), st.floats(0.01, 5), st.floats(1, 3))
def test_a_looser_limit_never_has_fewer_good_requests(
    times: list[tuple[float, float]], limit: float, factor: float
) -> None:
    requests = frame(*(row(first_s=1 + wait, last_s=1 + wait + more) for wait, more in times))
    strict = judge(requests, Slo(ttft=limit), open_loop=True)
    loose = judge(requests, Slo(ttft=limit * factor), open_loop=True)
    assert strict.good <= loose.good <= loose.attempted == len(times)


def test_percentiles_are_those_of_completed_requests() -> None:
    failed = row(request=10, outcome="failed", reason="Reset", first_s=61.0, last_s=61.0)
    good = [row(request=number) for number in range(10)]
    tables = [pa.Table.from_pylist(rows, schema=REQUESTS) for rows in (good, [*good, failed])]
    alone, beside = (cells._latencies(request_metrics(table), None, table) for table in tables)
    assert beside == alone
    assert set(alone) == {"ttft", "tpot", "e2e", "scheduled_ttft", "scheduled_e2e"}


def test_the_answer_behind_reasoning_has_a_latency_of_its_own() -> None:
    rows = [row(answer_s=1.15), row(request=1), row(request=2, answer_s=9.0, outcome="failed", reason="Reset")]
    table = pa.Table.from_pylist(rows, schema=REQUESTS)
    latency = cells._latencies(request_metrics(table), None, table)["ttft_answer"]
    assert latency.mean == pytest.approx(0.15), "of completed requests that have one"
    assert latency.percentiles["p99"].small


def test_records_of_a_version_without_a_column_are_read_and_know_nothing_of_it() -> None:
    table = completed(pa.Table.from_pylist([row()], schema=REQUESTS).drop_columns(["answer_s"]))
    assert table.schema.equals(REQUESTS)
    assert np.isnan(request_metrics(table).ttft_answer_s).all()


def test_columns_of_records() -> None:
    table = pa.Table.from_pylist([row()], schema=REQUESTS)
    assert missing_columns(table) == []
    assert missing_columns(table.drop_columns(["sent_s", "reason"])) == ["sent_s", "reason"]
