import csv
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput.engines.calibration.fit import fit_dense, fit_tables, scaled, with_host_overhead
from goodput.engines.calibration.tables import Attention, Curve, KernelTables, read_llmservingsim, read_vidur_dense

TOKENS = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048], dtype=float)
MICROSECONDS = 1e6
LAYERS = 4


def dense_seconds(weights: float, per_token: float, exponent: float) -> np.ndarray:
    result: np.ndarray = (weights**exponent + (per_token * TOKENS) ** exponent) ** (1 / exponent)
    return result


def known_tables() -> KernelTables:
    """Tables that follow the model exactly: const 1e-4, pure 1e-7 and 5e-6, mixed 2e-7 and 2e-5, prefill 3e-9."""
    grid = [
        row
        for row in itertools.product((0, 16, 512), (0, 1024), (0, 1, 16, 64), (128, 2048))
        if (row[0] or row[2]) and (row[0] or not row[1])
    ]
    chunk, prior, decodes, context = np.array(grid, dtype=float).T
    pure = 1e-7 * decodes * context + 5e-6 * decodes
    mixed = 2e-7 * decodes * context + 2e-5 * decodes + 3e-9 * chunk * (prior + chunk / 2)
    seconds = 1e-4 + np.where(chunk > 0, mixed, pure)
    sequences = np.array([1, 8, 64, 256], dtype=float)
    return KernelTables(
        dense=Curve(TOKENS, dense_seconds(0.01, 4e-5, 3.0)),
        attention=Attention(chunk, prior, decodes, context, seconds),
        head=Curve(sequences, 7e-4 + 1e-6 * sequences),
    )


@given(st.floats(1e-3, 0.1), st.floats(1e-6, 1e-4), st.floats(1.2, 8.0))
@settings(max_examples=25, deadline=None)
def test_a_dense_curve_of_the_models_form_is_given_back(weights: float, per_token: float, exponent: float) -> None:
    fit = fit_dense(Curve(TOKENS, dense_seconds(weights, per_token, exponent)))
    assert fit.error < 0.01


def test_costs_that_made_the_tables_are_found_again() -> None:
    fit = fit_tables(known_tables(), cuda_graph_max_tokens=512)
    costs = fit.costs
    assert costs.overhead_seconds == pytest.approx(8e-4, rel=1e-3)
    assert (costs.weights_seconds, costs.per_token_seconds) == pytest.approx((0.01, 4e-5), rel=1e-2)
    assert (costs.per_decode_kv_token_seconds, costs.per_decode_seconds) == pytest.approx((1e-7, 5e-6), rel=1e-3)
    mixed = (costs.per_mixed_decode_kv_token_seconds, costs.per_mixed_decode_seconds)
    assert mixed == pytest.approx((2e-7, 2e-5), rel=1e-3)
    assert costs.per_prefill_attention_seconds == pytest.approx(3e-9, rel=1e-3)
    assert costs.per_sampled_seconds == pytest.approx(1e-6, rel=1e-3)
    assert max(fit.dense_error, fit.attention_error, fit.head_error) < 0.01


def test_a_cost_is_never_negative_however_the_table_looks() -> None:
    tables = known_tables()
    falling = Curve(tables.head.count, 1e-3 - 1e-6 * tables.head.count)
    fit = fit_tables(KernelTables(tables.dense, tables.attention, falling), cuda_graph_max_tokens=0)
    assert fit.costs.per_sampled_seconds == 0.0


def test_host_overhead_is_added_to_what_every_step_pays() -> None:
    costs = fit_tables(known_tables(), cuda_graph_max_tokens=0).costs
    assert with_host_overhead(costs, 2e-3).overhead_seconds == pytest.approx(costs.overhead_seconds + 2e-3)


def test_a_dense_fit_is_scaled_by_the_parameters_of_the_layers() -> None:
    fit = fit_dense(Curve(TOKENS, dense_seconds(0.01, 4e-5, 3.0)))
    twice = scaled(fit, 2.0)
    assert twice.weights_seconds == 2 * fit.weights_seconds
    assert twice.per_token_seconds == 2 * fit.per_token_seconds


def test_a_curve_with_too_few_points_is_refused() -> None:
    with pytest.raises(ValueError, match="at least four points, this one has 3"):
        fit_dense(Curve(TOKENS[:3], TOKENS[:3]))


def test_llmservingsims_tables_are_sums_over_all_layers(tmp_path: Path) -> None:
    names = ("layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn", "down_proj")
    dense = [(name, tokens, 10.0) for name in (*names, "embedding", "final_layernorm") for tokens in (1, 2)]
    write(tmp_path / "dense.csv", ("layer", "tokens", "time_us"), dense)
    head = [(name, 1, 5.0) for name in ("lm_head", "sampler")]
    write(tmp_path / "per_sequence.csv", ("layer", "sequences", "time_us"), head)
    columns = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us")
    write(tmp_path / "attention.csv", columns, [(0, 0, 2, 16, 3.0)])
    tables = read_llmservingsim(tmp_path, LAYERS)
    assert tables.dense.seconds * MICROSECONDS == pytest.approx([LAYERS * 8 * 10 + 20] * 2)
    assert tables.head.seconds * MICROSECONDS == pytest.approx([10])
    assert tables.attention.seconds * MICROSECONDS == pytest.approx([3 * LAYERS])


def test_vidurs_table_is_read_for_one_degree_of_parallelism(tmp_path: Path) -> None:
    header = ("num_tokens", "num_tensor_parallel_workers", "time_stats.attn_pre_proj.median", "time_stats.add.median")
    write(tmp_path / "mlp.csv", header, [(8, 1, 0.5, 9.0), (4, 1, 0.25, 9.0), (4, 2, 7.0, 9.0)])
    curve = read_vidur_dense(tmp_path / "mlp.csv", LAYERS)
    assert curve.count.tolist() == [4, 8]
    assert curve.seconds == pytest.approx([1e-3, 2e-3])


def write(path: Path, header: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
