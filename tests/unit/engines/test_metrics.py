"""The simulator's metrics against a capture of vLLM 0.32.0."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from goodput.engines.api.histogram import Histogram, one_two_five
from goodput.engines.api.metrics import exposition, new_registry
from goodput.engines.simulated import info
from goodput.engines.simulated.config import CacheConfig, EngineConfig, SchedulerConfig
from goodput.engines.simulated.core import EngineCore
from goodput.engines.simulated.metrics import EngineCollector
from goodput.engines.simulated.profile import load_profile
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.stats import EngineStats

GOLDEN = Path(__file__).parents[2] / "data" / "vllm_0.32" / "metrics_loaded.txt"
MODEL = "smollm2"


@dataclass
class Family:
    kind: str
    help: str
    series: dict[str, set[tuple[tuple[str, str], ...]]] = field(default_factory=dict)


def families(text: str) -> dict[str, Family]:
    """Name to type, help and series; the labels of cache_config_info are named without their values."""
    found = {}
    for family in text_string_to_metric_families(text):
        entry = found[family.name] = Family(family.type, family.documentation)
        for sample in family.samples:
            labels = sample.labels
            if sample.name == "vllm:cache_config_info":
                labels = dict.fromkeys(labels, "")
            entry.series.setdefault(sample.name, set()).add(tuple(sorted(labels.items())))
    return found


def config(blocks: int = 364, max_model_len: int = 2048, block_size: int = 128) -> EngineConfig:
    scheduler = SchedulerConfig(max_num_batched_tokens=2048, max_num_seqs=16, max_model_len=max_model_len)
    cache = CacheConfig(block_size=block_size, num_gpu_blocks=blocks)
    return EngineConfig(model="toy", served_model_name=MODEL, scheduler=scheduler, cache=cache, vocab_size=49152)


class Engine:
    """A core with its stats, stepped by hand."""

    def __init__(self, engine_config: EngineConfig) -> None:
        self.core = EngineCore(engine_config, load_profile("instant"))
        self.stats = EngineStats(engine_config.scheduler.max_model_len)
        collector = EngineCollector(self.stats, model_name=MODEL, cache_info=info.cache_info(engine_config))
        self._registry = new_registry(collector)
        self.now_ns = 0

    def run(self) -> Iterator[None]:
        while (end := self.core.begin_step(self.now_ns)) is not None:
            self.stats.observe_step(self.core.end_step(), self.core.scheduler)
            self.now_ns = end
            yield

    def text(self) -> str:
        return exposition(self._registry).decode()

    def value(self, name: str, **labels: str) -> float:
        for family in text_string_to_metric_families(self.text()):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    return sample.value
        pytest.fail(f"no series {name} {labels}")


def test_names_types_helps_labels_and_buckets_are_vllms() -> None:
    theirs = {name: f for name, f in families(GOLDEN.read_text()).items() if not name.startswith("http_")}
    engine = Engine(config())
    ours = families(engine.text())
    assert set(ours) == set(theirs)
    for name, family in theirs.items():
        if name != "python_info":
            assert ours[name] == family


def test_the_cache_config_is_in_the_labels() -> None:
    line = next(row for row in Engine(config()).text().splitlines() if row.startswith("vllm:cache_config_info{"))
    for label in ('num_gpu_blocks="364"', 'block_size="128"', 'kv_cache_size_tokens="46592"'):
        assert label in line


def test_a_request_is_counted_as_vllm_counts_it() -> None:
    engine = Engine(config())
    engine.core.add(SimRequest(uid=0, num_prompt_tokens=3000 // 2, target_output_tokens=3, max_tokens=3))
    for steps, _ in enumerate(engine.run(), start=1):
        assert engine.value("vllm:generation_tokens_total") == steps
        assert engine.value("vllm:num_requests_running") == (1 if steps < 3 else 0)
    assert engine.value("vllm:prompt_tokens_total") == 1500
    assert engine.value("vllm:request_success_total", finished_reason="length") == 1
    assert engine.value("vllm:time_to_first_token_seconds_count") == 1
    assert engine.value("vllm:inter_token_latency_seconds_count") == 2
    assert engine.value("vllm:e2e_request_latency_seconds_sum") == pytest.approx(engine.now_ns / 1e9)
    assert engine.value("vllm:iteration_tokens_total_sum") == 1503
    assert engine.value("vllm:iteration_tokens_total_count") == 3
    assert engine.value("vllm:prefix_cache_queries_total") == 1500


def test_a_prompt_is_counted_with_its_first_token_not_with_its_chunks() -> None:
    engine = Engine(config(max_model_len=8192))
    engine.core.add(SimRequest(uid=0, num_prompt_tokens=5000, target_output_tokens=1))
    counted = [engine.value("vllm:prompt_tokens_total") for _ in engine.run()]
    assert counted == [0, 0, 5000]
    assert engine.value("vllm:iteration_tokens_total_count") == 1


def test_a_preemption_is_counted_with_the_next_token_of_the_preempted() -> None:
    engine = Engine(config(blocks=5, max_model_len=16, block_size=4))
    for uid in range(2):
        engine.core.add(SimRequest(uid=uid, num_prompt_tokens=7, target_output_tokens=8))
    preempted_at = counted_at = None
    for number, _ in enumerate(engine.run()):
        if preempted_at is None and engine.core.scheduler.waiting:
            preempted_at = number
        if counted_at is None and engine.value("vllm:num_preemptions_total") > 0:
            counted_at = number
    assert preempted_at is not None
    assert counted_at is not None
    assert counted_at > preempted_at
    assert engine.value("vllm:request_num_preemptions_sum") == engine.value("vllm:num_preemptions_total")


def test_the_cache_usage_is_the_share_of_usable_blocks() -> None:
    engine = Engine(config(blocks=11, max_model_len=64, block_size=8))
    engine.core.add(SimRequest(uid=0, num_prompt_tokens=33, target_output_tokens=2))
    next(engine.run())
    assert engine.value("vllm:kv_cache_usage_perc") == pytest.approx(0.5)


def test_histogram_edges_belong_to_their_bucket() -> None:
    histogram = Histogram((0.1, 0.5))
    for value in (0.05, 0.1, 0.5, 0.6):
        histogram.observe(value)
    histogram.observe(0.3, times=2)
    assert histogram.cumulative() == [("0.1", 2.0), ("0.5", 5.0), ("+Inf", 6.0)]
    assert histogram.total == pytest.approx(1.85)


def test_length_buckets_end_at_the_model_length() -> None:
    assert one_two_five(2048)[-3:] == (500, 1000, 2000)
    assert one_two_five(1) == (1,)
