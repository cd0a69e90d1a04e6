from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.analysis import histogram
from goodput.analysis.interval import score_interval
from goodput.analysis.schema.cell import LogHistogram
from goodput.analysis.schema.planned import Config
from goodput.analysis.score import BlockValue, Contender, Question, score
from goodput.analysis.stats import t_interval
from goodput.analysis.tables import FLOAT, INT, TEXT, as_number, flag_cells

QUESTION = Question(shapes={"s": ("low", "high")}, attainment=0.9, indifference=0.05, reference="a")


def log_histogram(values: list[float]) -> LogHistogram:
    counts: dict[int, int] = {}
    for value in values:
        bucket = math.floor(math.log(value) / math.log(1.01))
        counts[bucket] = counts.get(bucket, 0) + 1
    return LogHistogram(counts=counts)


@given(st.lists(st.floats(1e-4, 100), min_size=1, max_size=60), st.sampled_from([0.5, 0.95, 0.99]))
def test_histogram_quantile_is_within_its_bucket(values: list[float], p: float) -> None:
    got = histogram.quantile(log_histogram(values), p)
    exact = sorted(values)[max(1, round(p * len(values))) - 1]
    assert got == pytest.approx(exact, rel=0.0101)


def test_histogram_of_nothing_and_of_zeros() -> None:
    assert histogram.quantile(LogHistogram(), 0.5) is None
    assert histogram.quantile(LogHistogram(zero=9, counts={0: 1}), 0.5) == 0
    assert histogram.quantile(LogHistogram(zero=1, counts={0: 9}), 0.5) == pytest.approx(1.005, abs=1e-3)


def contender(low: list[int], high: list[int] | None = None) -> Contender:
    points = {"low": {str(k): BlockValue(good, 1000, 100.0) for k, good in enumerate(low)}}
    if high is not None:
        points["high"] = {str(k): BlockValue(good, 1000, 100.0) for k, good in enumerate(high)}
    return Contender("a", points)


def test_few_blocks_get_a_t_interval() -> None:
    each = contender([950, 960, 940])
    assert score_interval(each, score(each, QUESTION), QUESTION) == pytest.approx(t_interval([9.5, 9.6, 9.4]))
    alone = contender([950])
    assert score_interval(alone, score(alone, QUESTION), QUESTION) is None
    infeasible = contender([10, 10])
    assert score_interval(infeasible, score(infeasible, QUESTION), QUESTION) is None


def test_six_blocks_get_a_bootstrap_that_chooses_the_load_again() -> None:
    generator = np.random.default_rng(1)
    low, high = (list(map(int, generator.normal(950, 15, 6))) for _ in range(2))
    both, alone = contender(low, high), contender(low)
    wide = score_interval(both, score(both, QUESTION), QUESTION)
    narrow = score_interval(alone, score(alone, QUESTION), QUESTION)
    assert wide is not None
    assert narrow is not None
    assert narrow[0] <= sum(low) / 600 <= narrow[1]
    assert wide[0] >= narrow[0]  # the better of two is never worse than one
    assert wide[1] >= narrow[1]
    assert score_interval(both, score(both, QUESTION), QUESTION) == wide  # and it can be repeated


def test_a_score_that_hangs_by_a_thread_reaches_down_to_nothing() -> None:
    thread = contender([905, 905, 905, 905, 905, 875, 905])  # attainment .9007: most samples fall below .9
    interval = score_interval(thread, score(thread, QUESTION), QUESTION)
    assert interval is not None
    assert interval[0] == 0


def config(**flags: str) -> Config:
    return Config(engine="e", kind="vllm", flags=flags, swept=flags)


def test_flag_columns_have_the_type_of_their_values() -> None:
    configs = [config(a="1", b="0.5", c="fp8", load="2"), config(a="2", b="1", c="auto", load="4")]
    columns, values = flag_cells(configs, ["load"])
    assert columns == {"a": INT, "b": FLOAT, "c": TEXT, "flag_load": INT}
    assert values[configs[0].id] == {"a": 1, "b": 0.5, "c": "fp8", "flag_load": 2}
    assert flag_cells([config(a="1"), config(b="2")], [])[1][config(a="1").id] == {"a": 1, "b": None}


def test_a_seed_of_64_bits_is_text() -> None:
    configs = [config(seed="1"), config(seed="18446744073709551615")]
    assert flag_cells(configs, [])[0] == {"seed": TEXT}


@pytest.mark.parametrize("text", ["fp8", "1_0", "007", "nan", "inf", "", "1e5", "1."])
def test_what_is_no_plain_number_stays_text(text: str) -> None:
    assert as_number(text) is None


def test_plain_numbers() -> None:
    assert [as_number(text) for text in ("8192", "-1", "0", "0.90")] == [8192, -1, 0, 0.9]
