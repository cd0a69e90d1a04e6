"""Latencies of requests and the judgement against an SLO: which requests are good.

Records hold outcomes and times only; good and slow are derived here, so that records can be judged again
under another SLO. All columns are seconds. Definitions:

    ttft  = first token - sent              scheduled_ttft = first token - planned
    e2e   = last token - sent               scheduled_e2e  = last token - planned
    tpot  = (last token - first token) / (output tokens - 1), not applicable below two tokens
    ttft_answer = first token behind the reasoning - sent, not applicable without reasoning or without an answer
    itl   = gaps between tokens; itl_max is the request's largest

Open loop is judged on the scheduled forms: a request that the client sent late has waited all the same
(coordinated omission, Tene, wrk2). NumPy and Arrow only: the runner uses this too, and its image holds no pandas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from goodput.analysis.schema.planned import Slo

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Requests:
    """Columns of equal length, one entry per planned arrival. Seconds; NaN where an event never happened."""

    outcome: NDArray[np.str_]
    in_window: Mask
    output_tokens: Floats
    ttft_s: Floats
    tpot_s: Floats  # NaN also for fewer than two tokens
    itl_max_s: Floats
    e2e_s: Floats
    scheduled_ttft_s: Floats
    ttft_answer_s: Floats  # NaN also without reasoning
    scheduled_e2e_s: Floats

    @property
    def completed(self) -> Mask:
        """Window arrivals that ended as asked: the set whose latencies are reported."""
        mask: Mask = self.in_window & (self.outcome == "completed")
        return mask

    def __len__(self) -> int:
        return len(self.outcome)


@dataclass(frozen=True)
class Judgement:
    """Counts over the planned arrivals of the window. ``slow``: completed, and over at least one limit."""

    attempted: int
    good: int
    slow: int
    failed: int
    incomplete: int
    not_sent: int
    unjudged: int  # part of ``slow``: completed, but a limit's quantity is not known

    @property
    def completed(self) -> int:
        """Requests that ended as asked, whatever their latency."""
        return self.good + self.slow


def request_metrics(table: pa.Table) -> Requests:
    """Latencies of every row of a ``requests.parquet`` (columns: `records.REQUESTS`)."""
    tokens = _numbers(table, "output_tokens")
    first, last = _numbers(table, "first_s"), _numbers(table, "last_s")
    sent, planned = _numbers(table, "sent_s"), _numbers(table, "planned_s")
    gaps = np.where(tokens > 1, tokens - 1, np.nan)
    return Requests(
        outcome=np.array(table["outcome"].to_pylist(), dtype=np.str_),
        in_window=np.array(table["in_window"].to_pylist(), dtype=np.bool_),
        output_tokens=tokens,
        ttft_s=first - sent,
        tpot_s=(last - first) / gaps,
        itl_max_s=_numbers(table, "itl_max_s"),
        e2e_s=last - sent,
        scheduled_ttft_s=first - planned,
        ttft_answer_s=_numbers(table, "answer_s") - sent,
        scheduled_e2e_s=last - planned,
    )


def good_mask(requests: Requests, slo: Slo, *, open_loop: bool) -> Mask:
    """Which requests are good: completed, arrived in the window, within every limit that is set.

    A limit that does not apply to one token (tpot, itl) does not fail a one-token request. A completed request
    whose judged quantity is unknown is not good: nothing shows that it was.
    """
    mask = requests.completed
    for values, limit, needs_gap in _limits(requests, slo, open_loop=open_loop):
        within = values <= limit
        mask = mask & (within | (requests.output_tokens == 1) if needs_gap else within)
    return mask


def judge(requests: Requests, slo: Slo, *, open_loop: bool) -> Judgement:
    """Count the window's arrivals by what became of them."""
    outcome = requests.outcome[requests.in_window]
    good = int(good_mask(requests, slo, open_loop=open_loop).sum())
    return Judgement(
        attempted=len(outcome),
        good=good,
        slow=int((outcome == "completed").sum()) - good,
        failed=int((outcome == "failed").sum()),
        incomplete=int((outcome == "incomplete").sum()),
        not_sent=int((outcome == "not_sent").sum()),
        unjudged=int(_unjudged(requests, slo, open_loop=open_loop).sum()),
    )


def most_frequent(counts: Iterable[Mapping[str, int]]) -> str | None:
    """The reason that most requests have, of all these counts by reason; None where there is none."""
    total = Counter[str]()
    for each in counts:
        total.update(each)
    return min(total, key=lambda reason: (-total[reason], reason), default=None)


def rate(count: float | None, seconds: float | None) -> float | None:
    """Count per second; None where there is no count or no time."""
    return None if count is None or not seconds else count / seconds


def ratio(part: float | None, whole: float | None) -> float | None:
    """Share in 0..1; None for an empty set, never 0."""
    return None if part is None or not whole else part / whole


def _unjudged(requests: Requests, slo: Slo, *, open_loop: bool) -> Mask:
    unknown = np.zeros(len(requests), dtype=np.bool_)
    for values, _, needs_gap in _limits(requests, slo, open_loop=open_loop):
        missing = np.isnan(values)
        unknown |= missing & (requests.output_tokens != 1) if needs_gap else missing
    return unknown & requests.completed


def _limits(requests: Requests, slo: Slo, *, open_loop: bool) -> list[tuple[Floats, float, bool]]:
    """(values, limit in seconds, whether it needs two tokens) of every limit that is set."""
    limits = [
        (requests.scheduled_ttft_s if open_loop else requests.ttft_s, slo.ttft, False),
        (requests.tpot_s, slo.tpot, True),
        (requests.itl_max_s, slo.itl, True),
        (requests.scheduled_e2e_s if open_loop else requests.e2e_s, slo.e2e, False),
    ]
    return [(values, limit, needs_gap) for values, limit, needs_gap in limits if limit is not None]


def _numbers(table: pa.Table, name: str) -> Floats:
    values: Floats = table[name].cast(pa.float64()).to_numpy()
    return values
