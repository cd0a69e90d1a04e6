"""A profile from measured cells: the costs with which the simulator gives their latencies back.

Every cell is replayed: the requests that were sent, when they were sent, through the same scheduler config, in
virtual time. Six factors on the costs of a base profile are moved until mean TTFT and TPOT agree; a light pull
towards 1 decides what the cells cannot. Factors are positive, so a cost stays one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from goodput.engines.calibration.fit import MOST_BLEND
from goodput.engines.calibration.tables import Array
from goodput.engines.simulated.config import EngineConfig
from goodput.engines.simulated.profile import RooflineProfile, StepCosts
from goodput.engines.simulated.virtual import Arrival, simulate

NS = 1_000_000_000
#: The costs that each factor multiplies: host, weights, arithmetic, cache reads and decodes, prompt attention; and
#: how sharply weights and arithmetic hide each other.
FACTORS: tuple[tuple[str, ...], ...] = (
    ("overhead_seconds",),
    ("weights_seconds",),
    ("per_token_seconds",),
    (
        "per_decode_kv_token_seconds",
        "per_decode_seconds",
        "per_mixed_decode_kv_token_seconds",
        "per_mixed_decode_seconds",
    ),
    ("per_prefill_attention_seconds",),
    ("blend_exponent",),
)
_LARGEST_FACTOR = 50.0
_PULL = 0.02
_LOG_STEP = 0.05
_MOST_EVALUATIONS = 12


@dataclass(frozen=True)
class Means:
    """Mean latencies in seconds of the judged requests; no TPOT where no answer has two tokens."""

    ttft: float
    tpot: float | None
    e2e: float


@dataclass(frozen=True)
class ObservedCell:
    """A measured cell.

    Attributes:
        name: for messages and tables.
        config: of the engine as it ran.
        arrivals: all requests that were sent, in order of time, from the cell's start.
        judged: whether a request counts (it arrived in the window and completed).
        means: measured.
    """

    name: str
    config: EngineConfig
    arrivals: Sequence[Arrival]
    judged: Sequence[bool]
    means: Means


@dataclass(frozen=True)
class Prediction:
    """A cell, what the calibrated profile says of it, and whether the fit saw it."""

    cell: ObservedCell
    predicted: Means
    fitted: bool

    def error(self, name: str) -> float | None:
        """Relative error of `ttft`, `tpot` or `e2e`: predicted / measured - 1; None where one of them is."""
        ours, real = getattr(self.predicted, name), getattr(self.cell.means, name)
        return None if ours is None or real is None else float(ours / real - 1)


def predict(cell: ObservedCell, profile: RooflineProfile) -> Means:
    """The cell's requests through the simulated engine."""
    served = simulate(cell.config, profile, cell.arrivals)
    rows = [
        (one.arrival.arrival_ns, one.token_ns[0], one.token_ns[-1], len(one.token_ns))
        for one, judged in zip(served, cell.judged, strict=True)
        if judged
    ]
    sent, first, last, tokens = np.array(rows, dtype=float).T
    return means_of((first - sent) / NS, (last - sent) / NS, tokens)


def means_of(ttft: Array, e2e: Array, tokens: Array) -> Means:
    """Of seconds and output tokens per request."""
    several = tokens > 1
    tpot = (e2e - ttft)[several] / (tokens[several] - 1)
    return Means(float(ttft.mean()), float(tpot.mean()) if several.any() else None, float(e2e.mean()))


def calibrate(cells: Sequence[ObservedCell], base: RooflineProfile) -> RooflineProfile:
    """`base` with costs fitted to `cells`.

    Raises:
        ValueError: there is no cell.
    """
    if not cells:
        raise ValueError("no cell to fit a profile to")

    def residuals(moved: Array) -> Array:
        profile = with_factors(base, np.exp(moved - 1))
        errors = [error for cell in cells for error in _log_errors(predict(cell, profile), cell.means)]
        return np.array([*errors, *(_PULL * (moved - 1))])

    # from 1, not 0: the finite differences of `least_squares` are relative to the value
    start = np.ones(len(FACTORS))
    limit = np.log(_LARGEST_FACTOR)
    found = least_squares(
        residuals,
        start,
        bounds=(start - limit, start + limit),
        loss="soft_l1",
        f_scale=0.2,
        diff_step=_LOG_STEP,
        max_nfev=_MOST_EVALUATIONS,
    )
    return with_factors(base, np.exp(found.x - 1))


def with_factors(base: RooflineProfile, factors: Sequence[float] | Array) -> RooflineProfile:
    """`base` with the costs of each group in `FACTORS` multiplied."""
    costs = base.step.model_dump()
    for names, factor in zip(FACTORS, factors, strict=True):
        costs |= {name: costs[name] * float(factor) for name in names if costs[name] is not None}
    costs["blend_exponent"] = min(max(costs["blend_exponent"], 1.0), MOST_BLEND)
    return base.model_copy(update={"step": StepCosts.model_validate(costs)})


def _log_errors(predicted: Means, measured: Means) -> list[float]:
    pairs = ((predicted.ttft, measured.ttft), (predicted.tpot, measured.tpot))
    return [float(np.log(ours / real)) for ours, real in pairs if ours is not None and real is not None]
