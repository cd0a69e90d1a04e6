"""What the teaching profile must show in the demo, in virtual time: four budgets, two rates, some seeds.

The numbers are those of examples/quickstart.yaml: 1,600 prompt and 5 output tokens, 4 and 30 requests/s,
lead-in 1 s, window 3 s, two blocks; time to first token at most 500 ms, time per output token at most 20 ms.
"""

import random
from dataclasses import dataclass
from functools import cache

import pytest

from goodput.engines.simulated.config import CacheConfig, EngineConfig, SchedulerConfig
from goodput.engines.simulated.profile import load_profile
from goodput.engines.simulated.virtual import Arrival, simulate

BUDGETS = (256, 512, 1024, 8192)
LOW, HIGH = 4.0, 30.0
PROMPT, OUTPUT = 1600, 5
LEAD_IN, WINDOW, TAIL = 1.0, 3.0, 0.5
BLOCKS = 2
SEEDS = range(5)


@dataclass(frozen=True)
class Cells:
    """One config at one rate over the blocks."""

    attempted: int
    good: int
    output_tokens_per_second: float

    @property
    def attainment(self) -> float:
        return self.good / self.attempted


def config(budget: int) -> EngineConfig:
    scheduler = SchedulerConfig(max_num_batched_tokens=budget, max_num_seqs=128, max_model_len=4096)
    cache = CacheConfig(block_size=16, num_gpu_blocks=20000)
    return EngineConfig(model="m", served_model_name="m", scheduler=scheduler, cache=cache, vocab_size=49152)


def arrivals(seed: int, rate: float) -> list[Arrival]:
    draw = random.Random(seed)
    times, now = [], 0.0
    while (now := now + draw.expovariate(rate)) < LEAD_IN + WINDOW + TAIL:
        times.append(Arrival(int(now * 1e9), PROMPT, OUTPUT))
    return times


@cache
def measure(budget: int, rate: float, seed: int) -> Cells:
    profile = load_profile("teaching")
    opened, closed = LEAD_IN * 1e9, (LEAD_IN + WINDOW) * 1e9
    attempted = good = delivered = 0
    for block in range(BLOCKS):
        for one in simulate(config(budget), profile, arrivals(1000 * seed + 10 * block + (rate > LOW), rate)):
            delivered += sum(opened <= stamp < closed for stamp in one.token_ns)
            if opened <= one.arrival.arrival_ns < closed:
                attempted += 1
                ttft = one.token_ns[0] - one.arrival.arrival_ns
                tpot = (one.token_ns[-1] - one.token_ns[0]) / (OUTPUT - 1)
                good += ttft <= 500e6 and tpot <= 20e6
    return Cells(attempted, good, delivered / WINDOW / BLOCKS)


def capacity(budget: int) -> float:
    served = simulate(config(budget), load_profile("teaching"), [Arrival(0, PROMPT, OUTPUT)] * 200)
    return 200 / (max(one.token_ns[-1] for one in served) / 1e9)


def test_one_load_is_below_every_capacity_and_one_above_all_but_the_largest() -> None:
    capacities = [capacity(budget) for budget in BUDGETS]
    assert capacities == sorted(capacities)
    assert capacities[0] > 2 * LOW
    assert 1.2 * capacities[-2] < HIGH < 0.9 * capacities[-1]


@pytest.mark.parametrize("seed", SEEDS)
def test_small_budgets_keep_the_promise_at_the_low_load(seed: int) -> None:
    for budget in BUDGETS[:2]:
        assert measure(budget, LOW, seed).attainment >= 0.9


@pytest.mark.parametrize("seed", SEEDS)
def test_the_largest_budget_breaks_it_at_both_loads(seed: int) -> None:
    for rate in (LOW, HIGH):
        assert measure(BUDGETS[-1], rate, seed).attainment < 0.9


@pytest.mark.parametrize("seed", SEEDS)
def test_the_largest_budget_delivers_the_most_tokens_at_the_high_load(seed: int) -> None:
    rates = {budget: measure(budget, HIGH, seed).output_tokens_per_second for budget in BUDGETS}
    assert max(rates, key=lambda budget: rates[budget]) == BUDGETS[-1]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_budget_keeps_the_promise_at_the_high_load(seed: int) -> None:
    for budget in BUDGETS:
        assert measure(budget, HIGH, seed).attainment < 0.9
