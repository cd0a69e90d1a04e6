import random
from functools import cache

import pytest

from goodput.engines.calibration.cells import FACTORS, Means, ObservedCell, Prediction, calibrate, predict, with_factors
from goodput.engines.simulated.config import CacheConfig, EngineConfig, SchedulerConfig
from goodput.engines.simulated.profile import RooflineProfile, load_profile
from goodput.engines.simulated.virtual import Arrival

TRUE_FACTORS = (2.0, 1.2, 0.8, 1.5, 1.3, 1.5)
#: Relative errors on cells that the fit did not see. Four cells, 1 % off each, do not tell six factors apart.
UNSEEN_BOUNDS = {"ttft": 0.15, "tpot": 0.05, "e2e": 0.05}


@cache
def base() -> RooflineProfile:
    profile = load_profile("h100-llama-3-8b")
    assert isinstance(profile, RooflineProfile)
    return profile


def truth() -> RooflineProfile:
    return with_factors(base(), TRUE_FACTORS)


def cell(budget: int, rate: float, number: int = 30) -> ObservedCell:
    """As a server with the true costs would be measured, with 1 % of noise."""
    dice = random.Random(f"{budget} {rate}")
    now, arrivals = 0.0, []
    for _ in range(number):
        now += dice.expovariate(rate)
        arrivals.append(Arrival(round(now * 1e9), dice.randint(200, 2000), dice.randint(20, 120)))
    scheduler = SchedulerConfig(max_num_batched_tokens=budget, max_num_seqs=128, max_model_len=8192)
    cache_config = CacheConfig(block_size=16, num_gpu_blocks=20000)
    config = EngineConfig(model="m", served_model_name="m", scheduler=scheduler, cache=cache_config, vocab_size=1000)
    judged = [index >= 4 for index in range(number)]
    exact = predict(ObservedCell("", config, arrivals, judged, Means(1, 1, 1)), truth())
    assert exact.tpot is not None
    noisy = Means(*(value * dice.gauss(1, 0.01) for value in (exact.ttft, exact.tpot, exact.e2e)))
    return ObservedCell(f"{budget} @ {rate}/s", config, arrivals, judged, noisy)


def test_a_profile_fitted_to_some_cells_predicts_the_others() -> None:
    cells = [cell(budget, rate) for budget in (512, 8192) for rate in (2, 8, 16)]
    unseen = cells[1::3]
    profile = calibrate([one for one in cells if one not in unseen], base())
    for one in unseen:
        before, after = (Prediction(one, predict(one, known), fitted=False) for known in (base(), profile))
        for name in ("tpot", "e2e"):
            assert abs(before.error(name) or 0) > 2 * UNSEEN_BOUNDS[name], "nothing to calibrate"
        for name, bound in UNSEEN_BOUNDS.items():
            assert abs(after.error(name) or 0) < bound


def test_factors_multiply_the_costs_of_their_group_and_nothing_else() -> None:
    costs, moved = base().step.model_dump(exclude_none=True), truth().step.model_dump(exclude_none=True)
    groups = {
        name: factor for names, factor in zip(FACTORS, [2.0, 1.2, 0.8, 1.5, 1.3, 1.5], strict=True) for name in names
    }
    assert moved == {name: value * groups[name] if name in groups else value for name, value in costs.items()}


def test_an_answer_of_one_token_has_no_tpot() -> None:
    config = cell(512, 2, number=5).config
    one = ObservedCell("one", config, [Arrival(0, 100, 1)], [True], Means(0.1, None, 0.1))
    found = Prediction(one, predict(one, base()), fitted=False)
    assert found.predicted.tpot is None
    assert found.error("tpot") is None
    assert found.error("ttft") is not None


def test_without_a_cell_nothing_is_fitted() -> None:
    with pytest.raises(ValueError, match="no cell"):
        calibrate([], base())
