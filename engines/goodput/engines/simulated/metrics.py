"""`/metrics` with vLLM 0.32's names, help texts, types, labels and buckets.

The values come from `EngineStats` when scraped, so that a token costs no metric objects on its way.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from goodput.engines.simulated.stats import EngineStats, Histogram

_HELP: dict[str, str] = yaml.safe_load(Path(__file__).with_name("metrics_help.yaml").read_text("utf-8"))

_Values = Iterable[tuple[Mapping[str, str], float]]


class EngineCollector(Collector):
    """Turns the engine's stats into metric families.

    Args:
        stats: read at every scrape.
        model_name: the served model name, a label of almost every series.
        cache_info: labels of `vllm:cache_config_info`.
    """

    def __init__(self, stats: EngineStats, *, model_name: str, cache_info: Mapping[str, str]) -> None:
        self._stats = stats
        self._model = {"model_name": model_name}
        self._labels = {"engine": "0", "model_name": model_name}
        self._cache_info = dict(cache_info)
        self._created = time.time()

    def collect(self) -> Iterator[Metric]:
        """All families, in vLLM's order."""
        yield from self._gauges()
        yield from self._counters()
        yield from self._histograms()
        info = {**self._cache_info, "engine": "0"}
        yield self._gauge("cache_config_info", [(info, 1.0)], plain=True)

    def _gauges(self) -> Iterator[Metric]:
        stats = self._stats
        yield self._gauge("num_requests_running", [({}, stats.running)])
        yield self._gauge("num_requests_waiting", [({}, stats.waiting)])
        reasons = [({"reason": "capacity"}, float(stats.waiting)), ({"reason": "deferred"}, 0.0)]
        yield self._gauge("num_requests_waiting_by_reason", reasons)
        states = [("awake", 1.0), ("weights_offloaded", 0.0), ("discard_all", 0.0)]
        yield self._gauge("engine_sleep_state", [({"sleep_state": name}, value) for name, value in states])
        yield self._gauge("kv_cache_usage_perc", [({}, stats.kv_usage)])

    def _counters(self) -> Iterator[Metric]:
        stats = self._stats
        for kind in ("flops", "read_bytes", "write_bytes"):
            yield self._counter(f"estimated_{kind}_per_gpu", [({}, 0.0)])
        yield self._counter("prefix_cache_queries", [({}, stats.prefix_queries)])
        yield self._counter("prefix_cache_hits", [({}, stats.prefix_hits)])
        for name in ("external_prefix_cache", "mm_cache"):
            yield self._counter(f"{name}_queries", [({}, 0.0)])
            yield self._counter(f"{name}_hits", [({}, 0.0)])
        yield self._counter("num_preemptions", [({}, stats.preemptions)])
        yield self._counter("prompt_tokens", [({}, stats.prompt_tokens)])
        cached = stats.cached_prompt_tokens
        sources = {"local_compute": stats.prompt_tokens - cached, "local_cache_hit": cached}
        sources["external_kv_transfer"] = 0
        yield self._counter("prompt_tokens_by_source", _labelled("source", sources))
        yield self._counter("prompt_tokens_cached", [({}, cached)])
        tiers = {"device": stats.prefix_hits, "host": 0, "p2p": 0, "disk": 0, "external_unspecified": 0}
        yield self._counter("prompt_tokens_cached_by_source", _labelled("source", tiers))
        yield self._counter("generation_tokens", [({}, stats.generation_tokens)])
        yield self._counter("request_success", _labelled("finished_reason", stats.finished))
        rejected = _labelled("reason", {"max_num_queued_reqs": 0, "max_num_queued_tokens": 0})
        yield self._counter("admission_rejections", rejected, base=self._model)

    def _histograms(self) -> Iterator[Metric]:
        stats = self._stats
        yield self._histogram("request_prompt_tokens", stats.request_prompt_tokens)
        yield self._histogram("request_generation_tokens", stats.request_generation_tokens)
        yield self._histogram("iteration_tokens_total", stats.iteration_tokens)
        yield self._histogram("request_max_num_generation_tokens", stats.max_generation_tokens)
        yield self._histogram("request_params_n", stats.n_param)
        yield self._histogram("request_params_max_tokens", stats.max_tokens_param)
        yield self._histogram("time_to_first_token_seconds", stats.ttft)
        yield self._histogram("inter_token_latency_seconds", stats.itl)
        yield self._histogram("request_time_per_output_token_seconds", stats.tpot)
        yield self._histogram("e2e_request_latency_seconds", stats.e2e)
        yield self._histogram("request_queue_time_seconds", stats.queue_time)
        yield self._histogram("request_inference_time_seconds", stats.inference_time)
        yield self._histogram("request_prefill_time_seconds", stats.prefill_time)
        yield self._histogram("request_decode_time_seconds", stats.decode_time)
        yield self._histogram("request_num_preemptions", stats.request_preemptions)
        yield self._histogram("request_prefill_kv_computed_tokens", stats.prefill_kv_computed)

    def _gauge(self, name: str, values: _Values, *, plain: bool = False) -> Metric:
        family = GaugeMetricFamily(f"vllm:{name}", _HELP[name])
        for labels, value in values:
            family.add_sample(f"vllm:{name}", dict(labels) if plain else {**self._labels, **labels}, value)
        return family

    def _counter(self, name: str, values: _Values, base: Mapping[str, str] | None = None) -> Metric:
        family = CounterMetricFamily(f"vllm:{name}", _HELP[name])
        for labels, value in values:
            whole = {**(self._labels if base is None else base), **labels}
            family.add_sample(f"vllm:{name}_total", whole, value)
            family.add_sample(f"vllm:{name}_created", whole, self._created)
        return family

    def _histogram(self, name: str, histogram: Histogram) -> Metric:
        family = HistogramMetricFamily(f"vllm:{name}", _HELP[name])
        rows = histogram.cumulative()
        for edge, count in rows:
            family.add_sample(f"vllm:{name}_bucket", {**self._labels, "le": edge}, count)
        family.add_sample(f"vllm:{name}_count", self._labels, rows[-1][1])
        family.add_sample(f"vllm:{name}_sum", self._labels, histogram.total)
        family.add_sample(f"vllm:{name}_created", self._labels, self._created)
        return family


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


def _labelled(label: str, values: Mapping[str, float]) -> _Values:
    return [({label: name}, value) for name, value in values.items()]
