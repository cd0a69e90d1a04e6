"""A cell in a few numbers, for live metrics and for tools. The tables are made by analysis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from goodput.analysis.metrics import Floats, judge, rate, ratio, request_metrics
from goodput.analysis.schema.planned import Load, Slo

QUANTILES = (0.5, 0.99)


@dataclass(frozen=True)
class Summary:
    """Judged by arrival in the window. None where there was nothing to judge.

    Attributes:
        goodput: good requests per second.
        attainment: good / attempted.
        offered: planned arrivals per second; None where no rate is planned: a burst, and a closed loop.
        ttft: quantile → seconds, of completed requests, from the actual send time.
        tpot: the same per output token after the first.
    """

    goodput: float | None
    attainment: float | None
    offered: float | None
    ttft: dict[float, float]
    tpot: dict[float, float]


def summarize(table: pa.Table, load: Load, slo: Slo, window_seconds: float) -> Summary:
    """The summary of a cell's ``requests.parquet``."""
    requests = request_metrics(table)
    judgement = judge(requests, slo, open_loop=load.open_loop)
    return Summary(
        goodput=rate(judgement.good, window_seconds),
        attainment=ratio(judgement.good, judgement.attempted),
        offered=rate(judgement.attempted, window_seconds) if load.highest_rate or load.speed else None,
        ttft=_quantiles(requests.ttft_s[requests.completed]),
        tpot=_quantiles(requests.tpot_s[requests.completed]),
    )


def _quantiles(values: Floats) -> dict[float, float]:
    known = values[~np.isnan(values)]
    return {share: float(np.quantile(known, share)) for share in QUANTILES} if len(known) else {}
