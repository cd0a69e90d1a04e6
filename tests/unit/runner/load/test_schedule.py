from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput.analysis.schema.base import Arrival
from goodput.analysis.schema.planned import Load, Stage
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.errors import ScheduleError
from goodput.runner.load.lengths import PlannedLengths
from goodput.runner.load.processes import NANOSECONDS, Times, arrivals, seed_sequence
from goodput.runner.load.schedule import Schedule, draw, hashed_requests, schedule_sha256

DRAWS = 100_000


def open_load(
    rate: float = 10,
    arrival: Arrival = "poisson",
    *,
    seconds: float | None = 20,
    requests: int | None = None,
    burstiness: float | None = None,
) -> Load:
    return Load(
        prompt_tokens=8,
        output_tokens=4,
        arrival=arrival,
        request_rate=rate,
        burstiness=burstiness,
        window_seconds=seconds,
        window_requests=requests,
    )


def plan(load: Load, seed: int = 1, lead_in: float = 5, drain: float = 60) -> PlannedLoad:
    return PlannedLoad(load=load, seed=seed, lead_in_seconds=lead_in, drain_seconds=drain)


def sha256(planned: PlannedLoad, schedule: Schedule | None) -> str:
    """The hash with the planned lengths."""
    lengths = PlannedLengths(planned.load, planned.seed)
    return schedule_sha256(schedule, [lengths.at(index) for index in range(hashed_requests(planned, schedule))])


def drawn(load: Load, seed: int, count: int = DRAWS) -> Times:
    stream = arrivals(load, seed)
    return np.concatenate(list(itertools.islice(stream, count // 4096 + 1)))[:count]


def dispersion(times: Times, seconds: float) -> float:
    """Variance over mean of the counts in bins: 1 for Poisson."""
    bins = np.bincount((times / NANOSECONDS / seconds).astype(int))[:-1]
    return float(np.var(bins) / np.mean(bins))


loads = st.builds(
    open_load,
    rate=st.floats(0.5, 300),
    arrival=st.sampled_from(["poisson", "constant", "gamma"]),
    seconds=st.floats(0.5, 30),
    burstiness=st.floats(0.2, 5),
)


@pytest.mark.parametrize("seed", [0, 7])
def test_poisson_has_the_rate_and_the_dispersion_of_poisson(seed: int) -> None:
    times = drawn(open_load(50), seed)
    gaps = np.diff(times) / NANOSECONDS
    assert gaps.mean() == pytest.approx(0.02, rel=0.02)
    assert gaps.std() == pytest.approx(0.02, rel=0.02)
    assert float(np.quantile(gaps, 0.5)) == pytest.approx(np.log(2) / 50, rel=0.03)
    for width in (0.2, 1.0, 5.0):
        assert dispersion(times, width) == pytest.approx(1.0, abs=0.15)


def test_gaps_are_independent_of_each_other() -> None:
    gaps = np.diff(drawn(open_load(50), 3)).astype(float)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 0.02


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gamma_has_the_rate_and_the_burstiness(burstiness: float) -> None:
    times = drawn(open_load(20, "gamma", burstiness=burstiness), 5)
    gaps = np.diff(times) / NANOSECONDS
    assert gaps.mean() == pytest.approx(1 / 20, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(burstiness**-0.5, rel=0.03)


def test_constant_is_constant() -> None:
    times = drawn(open_load(3, "constant"), 9, 10_000)
    assert times.tolist() == [round(k * NANOSECONDS / 3) for k in range(10_000)]


@given(load=loads, seed=st.integers(0, 2**63 - 1))
@settings(max_examples=60, deadline=None)
def test_the_window_holds_exactly_the_arrivals_in_it(load: Load, seed: int) -> None:
    schedule = draw(plan(load, seed, lead_in=2, drain=5))
    times = schedule.planned_ns
    assert load.window_seconds is not None
    assert schedule.opened_ns == 2 * NANOSECONDS
    assert schedule.closed_ns - schedule.opened_ns == round(load.window_seconds * NANOSECONDS)
    assert np.all(np.diff(times) >= 0)
    inside = (times >= schedule.opened_ns) & (times < schedule.closed_ns)
    assert np.flatnonzero(inside).tolist() == list(range(schedule.first, schedule.last))
    assert schedule.deadline_ns == schedule.closed_ns + 5 * NANOSECONDS
    assert times.size == 0 or times[-1] < schedule.deadline_ns


@given(load=loads, seed=st.integers(0, 2**63 - 1), requests=st.integers(1, 500))
@settings(max_examples=60, deadline=None)
def test_a_window_by_count_ends_when_the_next_arrival_is_planned(load: Load, seed: int, requests: int) -> None:
    counted = load.model_copy(update={"window_seconds": None, "window_requests": requests})
    schedule = draw(plan(counted, seed))
    assert schedule.last - schedule.first == requests
    assert schedule.planned_ns[schedule.last] == schedule.closed_ns
    assert schedule.first == 0 or schedule.planned_ns[schedule.first - 1] < schedule.opened_ns
    assert schedule.planned_ns[schedule.first] >= schedule.opened_ns


@given(load=loads, seed=st.integers(0, 2**63 - 1))
@settings(max_examples=30, deadline=None)
def test_the_stream_does_not_depend_on_the_window(load: Load, seed: int) -> None:
    short = draw(plan(load, seed, lead_in=1, drain=1)).planned_ns
    longer = load.model_copy(update={"window_seconds": 60.0})
    long = draw(plan(longer, seed, lead_in=9, drain=5)).planned_ns
    assert short.tolist() == long[: len(short)].tolist()


@given(load=loads, seed=st.integers(0, 2**63 - 1))
@settings(max_examples=30, deadline=None)
def test_the_hash_covers_lead_in_and_window_only(load: Load, seed: int) -> None:
    here, tail = (plan(load, seed, drain=drain) for drain in (1, 30))
    assert sha256(here, draw(here)) == sha256(tail, draw(tail))
    assert hashed_requests(here, draw(here)) == draw(here).last
    other = plan(load.model_copy(update={"prompt_tokens": 9}), seed)
    assert sha256(here, draw(here)) != sha256(other, draw(other)) or not draw(here).last


def test_another_seed_gives_other_times() -> None:
    hashes = {sha256(p, draw(p)) for p in (plan(open_load(), seed) for seed in range(50))}
    assert len(hashes) == 50


def test_the_hash_is_the_same_wherever_it_is_computed() -> None:
    """Pinned: another value would mean that old results cannot be compared with new ones."""
    constant = plan(open_load(4, "constant", seconds=1), lead_in=0.5)
    rows = b"".join(
        (k * 250_000_000).to_bytes(8, "little") + (8).to_bytes(4, "little") + (4).to_bytes(4, "little")
        for k in range(6)
    )
    assert sha256(constant, draw(constant)) == hashlib.sha256(rows).hexdigest()
    poisson = plan(open_load(4, seconds=1), 42, lead_in=0.5)
    assert draw(poisson).planned_ns[:3].tolist() == [621459243, 1226201523, 1749267380]


def test_a_closed_loop_is_hashed_by_lengths_alone() -> None:
    load = Load(prompt_tokens=8, output_tokens=4, arrival="closed", concurrency=3, window_requests=5)
    assert hashed_requests(plan(load), None) == 8
    assert sha256(plan(load, 1), None) == sha256(plan(load, 2), None)
    longer = load.model_copy(update={"output_tokens": 5})
    assert sha256(plan(longer), None) != sha256(plan(load), None)
    with pytest.raises(ValueError, match="no arrival times"):
        draw(plan(load))


def test_each_purpose_has_its_own_stream() -> None:
    seeds = [seed_sequence(1, "arrivals"), seed_sequence(1, "prompts", 0), seed_sequence(1, "prompts", 1)]
    assert len({tuple(seed.generate_state(4).tolist()) for seed in seeds}) == 3


def test_a_window_of_stages_begins_after_the_lead_in() -> None:
    stages = (Stage(duration_seconds=10, rate=5), Stage(duration_seconds=10, rate=5, end_rate=15))
    load = open_load(arrival="constant", seconds=20).model_copy(update={"request_rate": None, "stages": stages})
    schedule = draw(plan(load, lead_in=4, drain=2))
    assert (schedule.opened_ns, schedule.closed_ns) == (4 * NANOSECONDS, 24 * NANOSECONDS)
    assert schedule.first == 20
    assert schedule.last - schedule.first == 50 + 100
    assert len(schedule.planned_ns) - schedule.last == 2 * 15


def test_a_burst_is_sent_at_once_and_has_no_lead_in() -> None:
    load = open_load(arrival="burst", seconds=None, requests=7).model_copy(update={"request_rate": None})
    schedule = draw(plan(load, lead_in=0, drain=30))
    assert schedule.planned_ns.tolist() == [0] * 7
    assert (schedule.first, schedule.last, schedule.opened_ns) == (0, 7, 0)
    assert schedule.deadline_ns == pytest.approx(30 * NANOSECONDS, abs=1)
    assert hashed_requests(plan(load), schedule) == 7


def replay(seconds: float | None = 2, requests: int | None = None) -> Load:
    load = open_load(arrival="replay", seconds=seconds, requests=requests)
    return load.model_copy(update={"request_rate": None, "speed": 10.0})


def test_a_replay_begins_with_the_trace_and_goes_on_as_it_does() -> None:
    trace = np.arange(50, dtype=np.int64) * NANOSECONDS // 10
    schedule = draw(plan(replay(), lead_in=1, drain=1), trace)
    assert schedule.planned_ns.tolist() == trace[:40].tolist()
    assert (schedule.first, schedule.last) == (10, 30)
    counted = draw(plan(replay(None, 15), lead_in=1, drain=60), trace)
    assert (counted.first, counted.last, counted.closed_ns) == (10, 25, trace[25])
    assert len(counted.planned_ns) == 50


@pytest.mark.parametrize("load", [replay(9), replay(None, 40)])
def test_a_trace_that_ends_before_the_window_is_refused_with_its_length(load: Load) -> None:
    trace = np.arange(50, dtype=np.int64) * NANOSECONDS // 10
    with pytest.raises(ScheduleError, match=r"the trace lasts 4\.9 s at 10 times its speed \(50 requests\)"):
        draw(plan(load, lead_in=1), trace)
