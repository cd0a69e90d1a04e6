"""`/metrics` with vLLM 0.32's names, help texts, types, labels and buckets.

The values come from `RequestStats` when scraped, so that a token costs no metric objects on its way.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from goodput.engines.api.histogram import Histogram
from goodput.engines.api.stats import RequestStats

_HELP: dict[str, str] = yaml.safe_load(Path(__file__).with_name("metrics_help.yaml").read_text("utf-8"))

Values = Iterable[tuple[Mapping[str, str], float]]
"""(labels beside those that all series have, value) of each series of a family."""


class RequestCollector(Collector):
    """The metric families of requests. An engine that has more to show adds its own.

    Args:
        stats: read at every scrape.
        model_name: the served model name, a label of almost every series.
    """

    def __init__(self, stats: RequestStats, *, model_name: str) -> None:
        self._requests = stats
        self._model = {"model_name": model_name}
        self._labels = {"engine": "0", "model_name": model_name}
        self._created = time.time()

    def collect(self) -> Iterator[Metric]:
        """Gauges, counters and histograms of requests."""
        stats = self._requests
        yield self.gauge("num_requests_running", [({}, stats.running)])
        yield self.gauge("num_requests_waiting", [({}, stats.waiting)])
        reasons = [({"reason": "capacity"}, float(stats.waiting)), ({"reason": "deferred"}, 0.0)]
        yield self.gauge("num_requests_waiting_by_reason", reasons)
        yield self.counter("prompt_tokens", [({}, stats.prompt_tokens)])
        yield self.counter("generation_tokens", [({}, stats.generation_tokens)])
        yield self.counter("request_success", labelled("finished_reason", stats.finished))
        yield from self._histograms()

    def _histograms(self) -> Iterator[Metric]:
        stats = self._requests
        yield self.histogram("request_prompt_tokens", stats.request_prompt_tokens)
        yield self.histogram("request_generation_tokens", stats.request_generation_tokens)
        yield self.histogram("request_max_num_generation_tokens", stats.max_generation_tokens)
        yield self.histogram("request_params_n", stats.n_param)
        yield self.histogram("request_params_max_tokens", stats.max_tokens_param)
        yield self.histogram("time_to_first_token_seconds", stats.ttft)
        yield self.histogram("inter_token_latency_seconds", stats.itl)
        yield self.histogram("request_time_per_output_token_seconds", stats.tpot)
        yield self.histogram("e2e_request_latency_seconds", stats.e2e)
        yield self.histogram("request_queue_time_seconds", stats.queue_time)
        yield self.histogram("request_inference_time_seconds", stats.inference_time)
        yield self.histogram("request_prefill_time_seconds", stats.prefill_time)
        yield self.histogram("request_decode_time_seconds", stats.decode_time)

    def gauge(self, name: str, values: Values, *, plain: bool = False) -> Metric:
        """A gauge; `plain` without the labels that all series have."""
        family = GaugeMetricFamily(f"vllm:{name}", _HELP[name])
        for labels, value in values:
            family.add_sample(f"vllm:{name}", dict(labels) if plain else {**self._labels, **labels}, value)
        return family

    def counter(self, name: str, values: Values, *, engine: bool = True) -> Metric:
        """A counter; without `engine` it is the whole server's."""
        family = CounterMetricFamily(f"vllm:{name}", _HELP[name])
        for labels, value in values:
            whole = {**(self._labels if engine else self._model), **labels}
            family.add_sample(f"vllm:{name}_total", whole, value)
            family.add_sample(f"vllm:{name}_created", whole, self._created)
        return family

    def histogram(self, name: str, histogram: Histogram) -> Metric:
        """A histogram."""
        family = HistogramMetricFamily(f"vllm:{name}", _HELP[name])
        rows = histogram.cumulative()
        for edge, count in rows:
            family.add_sample(f"vllm:{name}_bucket", {**self._labels, "le": edge}, count)
        family.add_sample(f"vllm:{name}_count", self._labels, rows[-1][1])
        family.add_sample(f"vllm:{name}_sum", self._labels, histogram.total)
        family.add_sample(f"vllm:{name}_created", self._labels, self._created)
        return family


def labelled(label: str, values: Mapping[str, float]) -> Values:
    """One series for each value of a label."""
    return [({label: name}, value) for name, value in values.items()]


def new_registry(collector: Collector) -> CollectorRegistry:
    """The registry behind `/metrics`: Python, process, engine."""
    registry = CollectorRegistry()
    GCCollector(registry=registry)
    PlatformCollector(registry=registry)
    ProcessCollector(registry=registry)
    registry.register(collector)
    return registry


def exposition(registry: CollectorRegistry) -> bytes:
    """The text that a scrape gets."""
    return generate_latest(registry)
