"""One look at the server's ``/metrics``: text in, numbers out. What the server does not expose is None."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

from prometheus_client.samples import Sample
from pydantic import Field

from goodput.analysis.schema.base import Document
from goodput.analysis.schema.server import ServerHistogram
from goodput.runner import names
from goodput.runner.exposition import ExpositionError, Samples, pick, read_samples, reduce
from goodput.runner.page import Page


class Snapshot(Document):
    """The server's counters and gauges at one time, summed over its engines (KV use: the fullest engine)."""

    stamp: float  # CLOCK_MONOTONIC seconds, in the middle of the request
    problem: str | None = None  # why nothing is known
    start_time: float | None = None  # of the server's process, Unix seconds
    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None  # 0..1
    preemptions: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_queries: float | None = None  # tokens
    prefix_hits: float | None = None  # tokens
    finished: dict[str, float] | None = None  # requests by finished_reason
    kv_blocks: int | None = None
    block_size: int | None = None
    histograms: dict[str, ServerHistogram] = Field(default_factory=dict)  # not in the samples beside the load
    names: dict[str, str] = Field(default_factory=dict)  # quantity → the name that it was read from

    @property
    def known(self) -> bool:
        """Whether the server says how many requests it has: without that there are no server columns."""
        return self.running is not None and self.waiting is not None

    @property
    def served(self) -> bool:
        """Whether the server has served requests since it started."""
        return bool(self.generation_tokens) or sum((self.finished or {}).values()) > 0

    def same(self, other: Snapshot) -> bool:
        """Equal but for the time."""
        return self.model_copy(update={"stamp": other.stamp}) == other


def parse(text: str, stamp: float, *, whole: bool = True) -> Snapshot:
    """Read the exposition text. Not ``whole``: without histograms and names, for the samples beside the load."""
    try:
        samples = read_samples(text, names.SCALARS | names.BUCKETS if whole else names.SCALARS)
    except ExpositionError as error:
        return Snapshot(stamp=stamp, problem=f"NoServerMetrics: {error}")
    values: dict[str, float | None] = {}
    for field, spellings in names.SUMMED.items():
        values[field] = reduce(pick(samples, spellings), sum)
    for field, spellings in names.HIGHEST.items():
        values[field] = reduce(pick(samples, spellings), max)
    info = pick(samples, names.CACHE_INFO)
    snapshot = Snapshot(
        stamp=stamp,
        **values,
        finished=_by_label(pick(samples, names.FINISHED), "finished_reason"),
        kv_blocks=_label_sum(info, "num_gpu_blocks"),
        block_size=_label_first(info, "block_size"),
        histograms=_histograms(samples) if whole else {},
        names=_names(samples) if whole else {},
    )
    if snapshot.known:
        return snapshot
    return snapshot.model_copy(update={"problem": "NoServerMetrics: the numbers of requests are not in /metrics"})


def read(metrics: Callable[[], Page], *, whole: bool = True) -> Snapshot:
    """Take a snapshot. A server without ``/metrics`` gives one in which nothing is known, and why."""
    begun = time.monotonic()
    page = metrics()
    stamp = (begun + time.monotonic()) / 2
    if page.problem is not None:
        return Snapshot(stamp=stamp, problem=f"NoServerMetrics: {page.problem}")
    return parse(page.text, stamp, whole=whole)


def _names(samples: Samples) -> dict[str, str]:
    """Which spelling each quantity was read from."""
    scalars = {**names.SUMMED, **names.HIGHEST, "finished": names.FINISHED}
    found = {field: next((n for n in spellings if samples.get(n)), None) for field, spellings in scalars.items()}
    for field, spellings in names.HISTOGRAMS.items():
        found[f"{field}_histogram"] = next((n for n in spellings if samples.get(f"{n}_bucket")), None)
    return {field: name for field, name in found.items() if name is not None}


def _histograms(samples: Samples) -> dict[str, ServerHistogram]:
    found: dict[str, ServerHistogram] = {}
    for field, spellings in names.HISTOGRAMS.items():
        name = next((name for name in spellings if samples.get(f"{name}_bucket")), None)
        histogram = None if name is None else _histogram(samples[f"{name}_bucket"], samples.get(f"{name}_sum", []))
        if histogram is not None:
            found[field] = histogram
    return found


def _histogram(buckets: list[Sample], sums: list[Sample]) -> ServerHistogram | None:
    """Summed over the engines; None where their edges differ or there is no +Inf bucket."""
    totals: dict[float, float] = defaultdict(float)
    sets: dict[float, int] = defaultdict(int)
    for sample in buckets:
        edge = float(sample.labels.get("le", "nan"))
        totals[edge] += sample.value
        sets[edge] += 1
    edges = sorted(totals)
    if len(set(sets.values())) != 1 or edges[-1] != float("inf"):
        return None
    reached = [0.0, *(totals[edge] for edge in edges)]
    counts = tuple(later - earlier for earlier, later in pairwise(reached))
    return ServerHistogram(edges=tuple(edges[:-1]), counts=counts, total=reduce(sums, sum))


def _by_label(samples: list[Sample], label: str) -> dict[str, float] | None:
    if not samples:
        return None
    totals: dict[str, float] = defaultdict(float)
    for sample in samples:
        totals[sample.labels.get(label, "")] += sample.value
    return dict(totals)


def _label_sum(samples: list[Sample], label: str) -> int | None:
    numbers = [int(value) for sample in samples if (value := sample.labels.get(label, "")).isdigit()]
    return sum(numbers) if numbers else None


def _label_first(samples: list[Sample], label: str) -> int | None:
    return next((int(value) for sample in samples if (value := sample.labels.get(label, "")).isdigit()), None)
