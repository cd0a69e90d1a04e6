"""Latencies of requests and the judgement against an SLO: which requests are good.

Records hold outcomes and times only; good and slow are derived here, so that records can be judged again
under another SLO. All columns are seconds. Definitions:

    ttft  = first token - sent              scheduled_ttft = first token - planned
    e2e   = last token - sent               scheduled_e2e  = last token - planned
    tpot  = (last token - first token) / (output tokens - 1), not applicable below two tokens
    itl   = gaps between tokens; itl_max is the request's largest

Open loop is judged on the scheduled forms: a request that the client sent late has waited all the same
(coordinated omission, Tene, wrk2).
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from goodput.analysis.schema import Slo

LATENCIES = ("ttft", "tpot", "e2e", "scheduled_ttft", "scheduled_e2e")


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


def request_metrics(table: pa.Table | pd.DataFrame) -> pd.DataFrame:
    """The records with ``ttft_s, tpot_s, e2e_s, scheduled_ttft_s, scheduled_e2e_s`` added; ``itl_max_s`` is there.

    A value is NaN where one of its events never happened; ``tpot_s`` also for fewer than two tokens.
    """
    frame = table if isinstance(table, pd.DataFrame) else table.to_pandas()
    tokens = pd.to_numeric(frame["output_tokens"])
    first, last = _seconds(frame, "first_s"), _seconds(frame, "last_s")
    sent, planned = _seconds(frame, "sent_s"), _seconds(frame, "planned_s")
    return frame.assign(
        ttft_s=first - sent,
        tpot_s=((last - first) / (tokens - 1)).where(tokens > 1),
        e2e_s=last - sent,
        scheduled_ttft_s=first - planned,
        scheduled_e2e_s=last - planned,
    )


def good_mask(requests: pd.DataFrame, slo: Slo, *, open_loop: bool) -> pd.Series[bool]:
    """Which rows of `request_metrics` are good: completed, arrived in the window, within every limit that is set.

    A limit that does not apply to one token (tpot, itl) does not fail a one-token request. A completed request
    whose judged quantity is unknown is not good: nothing shows that it was.
    """
    mask = requests["in_window"].astype(bool) & (requests["outcome"] == "completed")
    for column, limit, needs_gap in _limits(slo, open_loop=open_loop):
        within = requests[column] <= limit
        if needs_gap:
            within |= _single_token(requests)
        mask &= within
    return mask


def judge(requests: pd.DataFrame, slo: Slo, *, open_loop: bool) -> Judgement:
    """Count the window's arrivals of `request_metrics` by what became of them."""
    window = requests[requests["in_window"].astype(bool)]
    outcomes = window["outcome"].value_counts()
    good = int(good_mask(window, slo, open_loop=open_loop).sum())
    return Judgement(
        attempted=len(window),
        good=good,
        slow=int(outcomes.get("completed", 0)) - good,
        failed=int(outcomes.get("failed", 0)),
        incomplete=int(outcomes.get("incomplete", 0)),
        not_sent=int(outcomes.get("not_sent", 0)),
        unjudged=int(_unjudged(window, slo, open_loop=open_loop).sum()),
    )


def rate(count: float | None, seconds: float | None) -> float | None:
    """Count per second; None where there is no count or no time."""
    return None if count is None or not seconds else count / seconds


def ratio(part: float | None, whole: float | None) -> float | None:
    """Share in 0..1; None for an empty set, never 0."""
    return None if part is None or not whole else part / whole


def _unjudged(window: pd.DataFrame, slo: Slo, *, open_loop: bool) -> pd.Series[bool]:
    unknown = pd.Series(data=False, index=window.index)
    for column, _, needs_gap in _limits(slo, open_loop=open_loop):
        missing = window[column].isna()
        unknown |= missing & ~_single_token(window) if needs_gap else missing
    return unknown & (window["outcome"] == "completed")


def _limits(slo: Slo, *, open_loop: bool) -> list[tuple[str, float, bool]]:
    """(column, limit in seconds, whether it needs two tokens) of every limit that is set."""
    scheduled = "scheduled_" if open_loop else ""
    limits = [
        (f"{scheduled}ttft_s", slo.ttft, False),
        ("tpot_s", slo.tpot, True),
        ("itl_max_s", slo.itl, True),
        (f"{scheduled}e2e_s", slo.e2e, False),
    ]
    return [(column, limit, needs_gap) for column, limit, needs_gap in limits if limit is not None]


def _single_token(requests: pd.DataFrame) -> pd.Series[bool]:
    return pd.to_numeric(requests["output_tokens"]) == 1


def _seconds(frame: pd.DataFrame, column: str) -> pd.Series[float]:
    return pd.to_numeric(frame[column]).astype(float)
