"""What the server and its GPUs said of themselves over a window."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from goodput.analysis.schema.base import Document


class ServerHistogram(Document):
    """A histogram as the server keeps it. Bucket k holds values in (edges[k-1], edges[k]]; the last one the rest."""

    edges: tuple[float, ...]
    counts: tuple[float, ...]  # one more than edges
    total: float | None = None  # of all values

    @property
    def count(self) -> float:
        """How many values."""
        return sum(self.counts)

    @property
    def mean(self) -> float | None:
        """Their mean, exact; None where there is none."""
        return None if self.total is None or not self.count else self.total / self.count

    def within(self, limit: float | None) -> float | None:
        """Share of values at or below the limit. None unless the limit is an edge: nothing is interpolated."""
        if limit is None or limit not in self.edges or not self.count:
            return None
        return sum(self.counts[: self.edges.index(limit) + 1]) / self.count


class RequestTally(Document):
    """Requests of a whole cell as the client saw them, to hold against the server's own counts."""

    finished: int  # the stream came to its end, with a finish reason
    other: int  # sent, and ended in any other way: closed by the client, refused, broken


PrefixReset = Literal["verified", "said"]
"""``verified``: a text that was in the prefix cache was not after the reset. ``said``: the server says so, no more."""


class ServerColumns(Document):
    """Server side of a cell. Counters: deltas between the idle snapshots; gauges: samples inside the window."""

    complete: bool  # False: the gauges are null
    reason: str | None = None  # why not complete
    samples: int = 0
    gap_seconds: float | None = None  # longest time in the window without a sample
    preemptions: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    prefix_reset: PrefixReset | None = None  # before the cell; None: it was not, or nobody knows
    requests_finished: dict[str, float] | None = None  # by finished_reason
    requests_client: RequestTally | None = None
    counts_agree: bool | None = None  # server and client saw the same number of requests
    kv_usage_mean: float | None = None
    kv_usage_p95: float | None = None
    kv_usage_max: float | None = None
    running_mean: float | None = None
    running_p95: float | None = None
    running_max: float | None = None
    waiting_mean: float | None = None
    waiting_p95: float | None = None
    waiting_max: float | None = None
    gauge_samples: dict[str, int] = Field(default_factory=dict)  # that mean, p95 and max rest on
    histograms: dict[str, ServerHistogram] = Field(default_factory=dict)  # over the whole cell: ttft, itl, tpot, ...
    names: dict[str, str] = Field(default_factory=dict)  # quantity → the metric's name that it was read from
    kv_blocks: int | None = None
    block_size: int | None = None

    @property
    def prefix_hit_ratio(self) -> float | None:
        """Share of prompt tokens found in the prefix cache; None where nothing was asked."""
        if not self.prefix_queries or self.prefix_hits is None:
            return None
        return self.prefix_hits / self.prefix_queries


class Spread(Document):
    """Of a gauge's samples, over all GPUs of the server."""

    mean: float
    min: float
    max: float
    samples: int


class GpuColumns(Document):
    """The GPUs during the window, as a DCGM exporter shows them. What it does not show is None."""

    reason: str | None = None  # why there is nothing
    gpus: tuple[str, ...] = ()  # UUIDs
    samples: int = 0
    sm_clock_mhz: Spread | None = None
    memory_clock_mhz: Spread | None = None
    power_watts: Spread | None = None
    temperature_celsius: Spread | None = None
    violations: dict[str, float] = Field(default_factory=dict)  # rise of throttling time, in the exporter's unit (ns)
    throttled: dict[str, int] | None = None  # samples by clock event reason
