"""One look at the server's ``/metrics``: text in, numbers out. What the server does not expose is None."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from goodput.analysis.schema import Document
from goodput.runner import names

_By = dict[str, list[Sample]]


class Snapshot(Document):
    """The server's counters and gauges at one time, summed over its engines (KV use: the fullest engine)."""

    stamp: float  # CLOCK_MONOTONIC seconds, in the middle of the request
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


def parse(text: str, stamp: float) -> Snapshot:
    """Read the exposition text. Lines of other metrics are not even parsed: this runs beside the load."""
    samples: _By = defaultdict(list)
    lines = "\n".join(line for line in text.splitlines() if _name(line) in names.ALL)
    for family in text_string_to_metric_families(lines + "\n"):
        for sample in family.samples:
            samples[sample.name].append(sample)
    values: dict[str, float | None] = {}
    for field, spellings in names.SUMMED.items():
        values[field] = _reduce(_first(samples, spellings), sum)
    for field, spellings in names.HIGHEST.items():
        values[field] = _reduce(_first(samples, spellings), max)
    info = _first(samples, names.CACHE_INFO)
    return Snapshot(
        stamp=stamp,
        **values,
        finished=_by_label(_first(samples, names.FINISHED), "finished_reason"),
        kv_blocks=_label_sum(info, "num_gpu_blocks"),
        block_size=_label_first(info, "block_size"),
    )


def read(metrics: Callable[[], str | None]) -> Snapshot:
    """Take a snapshot. A server without ``/metrics`` gives one in which nothing is known."""
    begun = time.monotonic()
    text = metrics()
    return parse(text or "", (begun + time.monotonic()) / 2)


def _name(line: str) -> str:
    for end, character in enumerate(line):
        if character in "{ ":
            return line[:end]
    return line


def _first(samples: _By, spellings: Iterable[str]) -> list[Sample]:
    return next((samples[name] for name in spellings if samples.get(name)), [])


def _reduce(samples: list[Sample], how: Callable[[Iterable[float]], float]) -> float | None:
    return how([sample.value for sample in samples]) if samples else None


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
