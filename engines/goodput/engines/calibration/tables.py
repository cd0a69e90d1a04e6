"""Kernel timing tables as others publish them, brought to one form: seconds for the whole model.

Known forms: LLMServingSim's (a folder with `dense.csv`, `attention.csv` and `per_sequence.csv`, microseconds
per layer) and Vidur's `mlp.csv` (milliseconds per layer, matrix products only).
"""

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: How often each kernel of LLMServingSim's table runs in one layer; the others run once per step.
_PER_LAYER = {
    "layernorm": 2,
    "qkv_proj": 1,
    "rotary_emb": 1,
    "o_proj": 1,
    "gate_up_proj": 1,
    "act_fn": 1,
    "down_proj": 1,
}
_PER_STEP = ("embedding", "final_layernorm")
_PER_SEQUENCE = ("lm_head", "sampler")
_VIDUR = (
    "input_layernorm",
    "attn_pre_proj",
    "attn_rope",
    "attn_post_proj",
    "post_attention_layernorm",
    "mlp_up_proj",
    "mlp_act",
    "mlp_down_proj",
)


@dataclass(frozen=True)
class Curve:
    """Seconds by a count (tokens, or sequences), both one-dimensional and of one length."""

    count: Array
    seconds: Array


@dataclass(frozen=True)
class Attention:
    """Attention kernels: one chunk of a prompt beside equal decodes. Arrays of one length.

    Attributes:
        chunk, prior: tokens of the chunk, and its tokens in the cache; no chunk where 0.
        decodes, context: number of decodes, and the tokens that each reads from the cache.
        seconds: all layers together.
    """

    chunk: Array
    prior: Array
    decodes: Array
    context: Array
    seconds: Array


@dataclass(frozen=True)
class KernelTables:
    """What a table set says about one device and model."""

    dense: Curve
    attention: Attention
    head: Curve


def read_llmservingsim(folder: Path, layers: int) -> KernelTables:
    """The tables in `folder` (one tensor-parallel degree) of a model with so many layers.

    Raises:
        OSError, KeyError, ValueError: a table is missing or is not of the known form.
    """
    dense = _by_kernel(folder / "dense.csv", "tokens")
    times = {name: layers * count for name, count in _PER_LAYER.items()} | dict.fromkeys(_PER_STEP, 1)
    head = _by_kernel(folder / "per_sequence.csv", "sequences")
    rows = np.array([[float(value) for value in row.values()] for row in _rows(folder / "attention.csv")])
    chunk, prior, decodes, context, microseconds = rows.T
    return KernelTables(
        dense=_sum(dense, times),
        attention=Attention(chunk, prior, decodes, context, microseconds * layers * 1e-6),
        head=_sum(head, dict.fromkeys(_PER_SEQUENCE, 1)),
    )


def read_vidur_dense(path: Path, layers: int, *, tensor_parallel: int = 1) -> Curve:
    """Matrix products of all layers from Vidur's `mlp.csv`; the residual sum is taken as part of the norms."""
    kept = [row for row in _rows(path) if int(row["num_tensor_parallel_workers"]) == tensor_parallel]
    seconds: dict[int, float] = {}
    for row in kept:
        layer_ms = sum(float(row.get(f"time_stats.{name}.median") or 0.0) for name in _VIDUR)
        seconds[int(row["num_tokens"])] = layer_ms * layers * 1e-3
    return _curve(seconds)


def _rows(path: Path) -> Iterable[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _by_kernel(path: Path, count: str) -> dict[str, dict[int, float]]:
    kernels: dict[str, dict[int, float]] = defaultdict(dict)
    for row in _rows(path):
        kernels[row["layer"]][int(row[count])] = float(row["time_us"]) * 1e-6
    return kernels


def _sum(kernels: dict[str, dict[int, float]], times: dict[str, int]) -> Curve:
    counts = set.intersection(*(set(kernels[name]) for name in times))
    return _curve({count: sum(kernels[name][count] * often for name, often in times.items()) for count in counts})


def _curve(seconds: dict[int, float]) -> Curve:
    counts = sorted(seconds)
    return Curve(np.array(counts, dtype=float), np.array([seconds[count] for count in counts]))
