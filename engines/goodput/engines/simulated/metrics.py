"""All of vLLM 0.32's metric families, from the simulated engine's stats."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric

from goodput.engines.api.metrics import RequestCollector, labelled
from goodput.engines.simulated.stats import EngineStats


class EngineCollector(RequestCollector):
    """Turns the engine's stats into metric families.

    Args:
        stats: read at every scrape.
        model_name: the served model name, a label of almost every series.
        cache_info: labels of `vllm:cache_config_info`.
    """

    def __init__(self, stats: EngineStats, *, model_name: str, cache_info: Mapping[str, str]) -> None:
        super().__init__(stats, model_name=model_name)
        self._stats = stats
        self._cache_info = dict(cache_info)

    def collect(self) -> Iterator[Metric]:
        """All families."""
        yield from super().collect()
        yield from self._engine_gauges()
        yield from self._engine_counters()
        stats = self._stats
        yield self.histogram("iteration_tokens_total", stats.iteration_tokens)
        yield self.histogram("request_num_preemptions", stats.request_preemptions)
        yield self.histogram("request_prefill_kv_computed_tokens", stats.prefill_kv_computed)

    def _engine_gauges(self) -> Iterator[Metric]:
        states = [("awake", 1.0), ("weights_offloaded", 0.0), ("discard_all", 0.0)]
        yield self.gauge("engine_sleep_state", [({"sleep_state": name}, value) for name, value in states])
        yield self.gauge("kv_cache_usage_perc", [({}, self._stats.kv_usage)])
        info = {**self._cache_info, "engine": "0"}
        yield self.gauge("cache_config_info", [(info, 1.0)], plain=True)

    def _engine_counters(self) -> Iterator[Metric]:
        stats = self._stats
        for kind in ("flops", "read_bytes", "write_bytes"):
            yield self.counter(f"estimated_{kind}_per_gpu", [({}, 0.0)])
        yield self.counter("prefix_cache_queries", [({}, stats.prefix_queries)])
        yield self.counter("prefix_cache_hits", [({}, stats.prefix_hits)])
        for name in ("external_prefix_cache", "mm_cache"):
            yield self.counter(f"{name}_queries", [({}, 0.0)])
            yield self.counter(f"{name}_hits", [({}, 0.0)])
        yield self.counter("num_preemptions", [({}, stats.preemptions)])
        cached = stats.cached_prompt_tokens
        sources = {"local_compute": stats.prompt_tokens - cached, "local_cache_hit": cached}
        sources["external_kv_transfer"] = 0
        yield self.counter("prompt_tokens_by_source", labelled("source", sources))
        yield self.counter("prompt_tokens_cached", [({}, cached)])
        tiers = {"device": stats.prefix_hits, "host": 0, "p2p": 0, "disk": 0, "external_unspecified": 0}
        yield self.counter("prompt_tokens_cached_by_source", labelled("source", tiers))
        rejected = labelled("reason", {"max_num_queued_reqs": 0, "max_num_queued_tokens": 0})
        yield self.counter("admission_rejections", rejected, engine=False)
