"""Metrics of the cell that is being measured: asked for when somebody scrapes, never in the load client's way."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from goodput.analysis.schema.cell import LogHistogram
from goodput.runner.load.latencies import LATENCIES, Followed
from goodput.runner.load.sentlog import SentTail

LAG_EDGES_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
LATENCY_EDGES = range(-700, 631, 35)  # powers of the histogram's base: 1 ms to 530 s, each 1.42 times the last


@dataclass(frozen=True)
class Progress:
    """Requests of the running cell so far; ``failed``: of the ended ones, those without a 200."""

    sent: int
    ended: int
    failed: int = 0


@dataclass(frozen=True)
class Running:
    """Where to ask for the running cell.

    Attributes:
        progress: counts so far.
        followed: latencies so far; None where nothing follows the cell.
        folder: of the load client, with its send logs.
        processes: of the load client.
    """

    progress: Callable[[], Progress]
    followed: Callable[[], Followed | None]
    folder: Path
    processes: int


class Requests(Collector):
    """Counts of requests: those of ended cells plus the running one's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Callable[[], Progress] | None = None
        self._frozen = Progress(0, 0)  # a cell that has ended, and whose records are not there yet
        self._sent = 0
        self._responses = Tally[str](ok=0, failed=0)
        self._outcomes = Tally[str](completed=0, failed=0, incomplete=0, not_sent=0)

    def begin(self, running: Running) -> None:
        """A cell starts."""
        with self._lock:
            self._running = running.progress

    def freeze(self) -> None:
        """Its counts are final."""
        with self._lock:
            last = self._now()
            self._responses.update(ok=last.ended - last.failed, failed=last.failed)
            self._running, self._frozen = None, Progress(last.sent, last.sent)

    def finish(self, outcomes: dict[str, int]) -> None:
        """Its records are there."""
        with self._lock:
            self._running, self._frozen = None, Progress(0, 0)
            self._outcomes.update(outcomes)
            self._sent += sum(count for outcome, count in outcomes.items() if outcome != "not_sent")

    def _now(self) -> Progress:
        return self._frozen if self._running is None else self._running()

    def collect(self) -> Iterator[Metric]:
        """See `Collector`."""
        with self._lock:
            now, sent, running = self._now(), self._sent, self._running is not None
            responses, outcomes = Tally(self._responses), dict(self._outcomes)
        if running:
            responses.update(ok=now.ended - now.failed, failed=now.failed)
        yield GaugeMetricFamily(
            "goodput_runner_requests_in_flight", "Requests sent and not ended", value=now.sent - now.ended
        )
        yield CounterMetricFamily("goodput_runner_requests_sent", "Requests sent to the server", value=sent + now.sent)
        yield _counter(
            "goodput_runner_responses", "Requests that have ended, by status: ok is 200", "status", responses
        )
        yield _counter("goodput_runner_requests_ended", "Requests of ended cells, by outcome", "outcome", outcomes)


class SendLags(Collector):
    """How late requests were sent, from the send logs; over all cells."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._log: SentTail | None = None
        self._counts = np.zeros(len(LAG_EDGES_SECONDS) + 1, dtype=np.int64)
        self._sum_seconds = 0.0

    def begin(self, running: Running) -> None:
        """A cell starts."""
        with self._lock:
            self._log = SentTail(running.folder, running.processes)

    def freeze(self) -> None:
        """Its send logs are complete."""
        with self._lock:
            self._take()
            self._log = None

    def _take(self) -> None:
        if self._log is None:
            return
        entries = self._log.entries()
        entries = entries[entries["sent"] >= 0]
        lags = (entries["sent"] - entries["planned"]) / 1e9
        buckets = np.searchsorted(LAG_EDGES_SECONDS, lags, side="left")
        self._counts += np.bincount(buckets, minlength=len(self._counts))
        self._sum_seconds += float(lags.sum())

    def collect(self) -> Iterator[Metric]:
        """See `Collector`."""
        with self._lock:
            self._take()
            reached, total = self._counts.cumsum().tolist(), self._sum_seconds
        edges = [*map(str, LAG_EDGES_SECONDS), "+Inf"]
        yield HistogramMetricFamily(
            "goodput_runner_send_lag_seconds",
            "Sent - planned; what the worker has logged, at most a second ago",
            buckets=list(zip(edges, reached, strict=True)),
            sum_value=total,
        )


class LiveLatencies(Collector):
    """Latencies of the window's completed requests, where a follower parses them while the window runs."""

    def __init__(self, config: str, evidence: str) -> None:
        self._config, self._evidence = config, evidence
        self._lock = threading.Lock()
        self._ended: dict[str, Followed] = {}  # by load
        self._running: tuple[str, Running] | None = None

    def begin(self, load: str, running: Running) -> None:
        """A cell starts."""
        with self._lock:
            self._running = load, running

    def freeze(self) -> None:
        """It has ended, and its follower with it."""
        with self._lock:
            self._ended = self._now()
            self._running = None

    def _now(self) -> dict[str, Followed]:
        if self._running is None:
            return self._ended
        load, running = self._running
        followed = running.followed()
        return self._ended if followed is None else {**self._ended, load: followed}

    def collect(self) -> Iterator[Metric]:
        """See `Collector`."""
        with self._lock:
            now = dict(self._now())
        for name in LATENCIES:
            family = HistogramMetricFamily(
                f"goodput_live_{name}_seconds",
                f"{name.upper()} of the window's completed requests so far, at the client",
                labels=("config", "load", "evidence"),
            )
            for load, followed in now.items():
                family.add_metric((self._config, load, self._evidence), buckets(getattr(followed, name)), None)
            yield family


def buckets(histogram: LogHistogram) -> list[tuple[str, float]]:
    """Cumulative counts at every 35th edge of the histogram's own: exact, nothing is split."""
    counts = [0] * (len(LATENCY_EDGES) + 1)
    counts[0] = histogram.zero
    for bucket, count in histogram.counts.items():
        counts[bisect_left(LATENCY_EDGES, bucket + 1)] += count
    edges = [*(f"{histogram.base**edge:.6g}" for edge in LATENCY_EDGES), "+Inf"]
    return list(zip(edges, map(float, accumulate(counts)), strict=True))


def _counter(name: str, text: str, label: str, counts: dict[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=(label,))
    for value, count in sorted(counts.items()):
        family.add_metric((value,), count)
    return family
