"""Step costs from kernel tables, by least squares on relative errors with every coefficient at least 0.

A blind linear fit has negative terms that cancel on the table and lie outside it; a cost cannot be negative.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares, nnls

from goodput.engines.calibration.tables import Array, Attention, Curve, KernelTables
from goodput.engines.simulated.profile import StepCosts

#: Attention beyond so many tokens in the cache is not fitted: the shortest kernels would pay for the longest.
LONGEST_CONTEXT = 4096
MOST_BLEND = 64.0  # as a profile allows


@dataclass(frozen=True)
class Fit:
    """Costs, and how well they give the tables back (mean of absolute relative errors)."""

    costs: StepCosts
    dense_error: float
    attention_error: float
    head_error: float


@dataclass(frozen=True)
class DenseFit:
    """The soft maximum of reading the weights and of computing tokens."""

    weights_seconds: float
    per_token_seconds: float
    blend_exponent: float
    error: float


def fit_tables(tables: KernelTables, *, cuda_graph_max_tokens: int) -> Fit:
    """Costs of a step without any work of the host: kernels alone.

    What every step pays whatever it computes (launches of the attention kernels, the head's weights) is the
    overhead; `with_host_overhead` adds the host's.
    """
    dense = fit_dense(tables.dense)
    attention, attention_error = _fit_attention(tables.attention)
    head, head_error = _nnls(np.c_[np.ones_like(tables.head.count), tables.head.count], tables.head.seconds)
    constant, kv, decode, mixed_kv, mixed_decode, prefill = (float(value) for value in attention)
    costs = StepCosts(
        overhead_seconds=constant + float(head[0]),
        weights_seconds=dense.weights_seconds,
        per_token_seconds=dense.per_token_seconds,
        blend_exponent=dense.blend_exponent,
        per_decode_kv_token_seconds=kv,
        per_decode_seconds=decode,
        per_mixed_decode_kv_token_seconds=mixed_kv,
        per_mixed_decode_seconds=mixed_decode,
        per_prefill_attention_seconds=prefill,
        per_sampled_seconds=float(head[1]),
        cuda_graph_max_tokens=cuda_graph_max_tokens,
    )
    return Fit(costs, dense.error, attention_error, head_error)


def with_host_overhead(costs: StepCosts, seconds: float) -> StepCosts:
    """The same with a host that needs so long for each step."""
    return costs.model_copy(update={"overhead_seconds": costs.overhead_seconds + seconds})


def fit_dense(curve: Curve) -> DenseFit:
    """(weights^p + (per_token n)^p)^(1/p), all positive, p from 1 to 64.

    Raises:
        ValueError: fewer than four points.
    """
    count, seconds = curve.count, curve.seconds
    if len(count) < 4:
        raise ValueError(f"a dense curve needs at least four points, this one has {len(count)}")

    def predicted(logs: Array) -> Array:
        weights, per_token, exponent = np.exp(logs)
        sums: Array = np.logaddexp(exponent * np.log(weights), exponent * np.log(per_token * count)) / exponent
        return sums

    start = np.log([seconds[0], seconds[-1] / count[-1], 4.0])
    bounds = ([-np.inf, -np.inf, 0.0], [np.inf, np.inf, np.log(MOST_BLEND)])
    found = least_squares(lambda logs: predicted(logs) - np.log(seconds), start, bounds=bounds)
    weights, per_token, exponent = (float(value) for value in np.exp(found.x))
    error = float(np.abs(np.expm1(predicted(found.x) - np.log(seconds))).mean())
    return DenseFit(weights, per_token, min(max(exponent, 1.0), MOST_BLEND), error)


def scaled(dense: DenseFit, ratio: float) -> DenseFit:
    """For a model with `ratio` times the parameters in its layers: as many times the bytes and operations."""
    return replace(
        dense, weights_seconds=dense.weights_seconds * ratio, per_token_seconds=dense.per_token_seconds * ratio
    )


def _fit_attention(table: Attention) -> tuple[Array, float]:
    """Constant; KV token and decode of pure decode steps; the same of mixed ones; chunk * (prior + chunk / 2)."""
    mixed = (table.chunk > 0).astype(float)
    read = table.decodes * table.context
    columns = np.c_[
        np.ones_like(read),
        read * (1 - mixed),
        table.decodes * (1 - mixed),
        read * mixed,
        table.decodes * mixed,
        table.chunk * (table.prior + table.chunk / 2),
    ]
    kept = (table.context <= LONGEST_CONTEXT) & (table.prior <= LONGEST_CONTEXT)
    return _nnls(columns[kept], table.seconds[kept])


def _nnls(columns: Array, seconds: Array) -> tuple[Array, float]:
    """Coefficients at least 0, and the mean of the absolute relative errors that they leave."""
    relative = columns / seconds[:, None]
    found, _ = nnls(relative, np.ones_like(seconds))
    return found, float(np.abs(relative @ found - 1).mean())
