from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput.engines.errors import ProfileError
from goodput.engines.simulated.config import CacheConfig, EngineConfig, SchedulerConfig
from goodput.engines.simulated.graphs import capture_sizes, padded_tokens
from goodput.engines.simulated.profile import RooflineProfile, load_profile, profile_names
from goodput.engines.simulated.scheduler import StepPlan
from goodput.engines.simulated.virtual import Arrival, simulate


@cache
def roofline(name: str = "teaching") -> RooflineProfile:
    profile = load_profile(name)
    assert isinstance(profile, RooflineProfile)
    return profile


def engine(budget: int = 8192) -> EngineConfig:
    scheduler = SchedulerConfig(max_num_batched_tokens=budget, max_num_seqs=64, max_model_len=8192)
    cache = CacheConfig(block_size=16, num_gpu_blocks=20000)
    return EngineConfig(model="m", served_model_name="m", scheduler=scheduler, cache=cache, vocab_size=1000)


def test_every_shipped_profile_can_be_loaded_and_says_that_it_is_synthetic() -> None:
    assert profile_names() == [
        *("a100-llama-3-8b", "fixed-rate", "h100-llama-3-8b", "instant"),
        *("rtx-4090-llama-3.1-8b", "rtx-pro-6000-llama-3.1-8b", "teaching"),
    ]
    for name in profile_names():
        profile = load_profile(name)
        assert (profile.name, profile.synthetic) == (name, True)
        assert profile.source


def test_a_profile_is_read_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(roofline().model_dump(mode="json") | {"name": "mine"}))
    assert load_profile(str(path)).name == "mine"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"synthetic": False}, "synthetic"),
        ({"surprise": 1}, "surprise"),
        ({"step": {"overhead_seconds": -1}}, "overhead_seconds"),
        ({"kind": "measured"}, "kind"),
    ],
)
def test_a_wrong_profile_is_refused(tmp_path: Path, change: dict[str, object], complaint: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(roofline().model_dump(mode="json") | change))
    with pytest.raises(ProfileError, match=complaint):
        load_profile(str(path))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ProfileError, match=r"unknown profile 'tetching'.*teaching"):
        load_profile("tetching")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ProfileError, match=r"nowhere/x\.yaml"):
        load_profile("nowhere/x.yaml")


def test_the_step_time_is_the_documented_formula() -> None:
    step = roofline("teaching").step
    plan = StepPlan(num_tokens=520, num_decodes=8, decode_context_tokens=9000, prefill_attention=1e5, num_sampled=9)
    expected = (
        step.overhead_seconds
        + (step.weights_seconds**4 + (step.per_token_seconds * 520) ** 4) ** 0.25
        + step.per_decode_kv_token_seconds * 9000
        + step.per_decode_seconds * 8
        + step.per_prefill_attention_seconds * 1e5
        + step.per_sampled_seconds * 9
    )
    assert roofline("teaching").timer(engine().scheduler)(plan) == pytest.approx(expected * 1e9, abs=1)


def test_decodes_are_dearer_beside_a_chunk_of_a_prompt_where_the_profile_says_so() -> None:
    plain = roofline("teaching")
    step = plain.step.model_copy(update={"per_mixed_decode_kv_token_seconds": 3e-7, "per_mixed_decode_seconds": 4e-5})
    mixed = plain.model_copy(update={"step": step})
    pure = StepPlan(num_tokens=8, num_decodes=8, decode_context_tokens=9000, num_sampled=8)
    beside = StepPlan(num_tokens=108, num_decodes=8, decode_context_tokens=9000, prefill_attention=5e3, num_sampled=9)
    extra_seconds = (3e-7 - step.per_decode_kv_token_seconds) * 9000 + (4e-5 - step.per_decode_seconds) * 8
    times = [[one.timer(engine().scheduler)(plan) for one in (plain, mixed)] for plan in (pure, beside)]
    assert times[0][1] == times[0][0]
    assert times[1][1] - times[1][0] == pytest.approx(extra_seconds * 1e9, abs=2)


@settings(deadline=None)
@given(
    st.integers(1, 20000),
    st.integers(0, 256),
    st.integers(0, 10**6),
    st.sampled_from(["teaching", "h100-llama-3-8b", "rtx-4090-llama-3.1-8b"]),
)
def test_more_work_never_takes_less_time(tokens: int, decodes: int, context: int, name: str) -> None:
    timer = roofline(name).timer(engine(budget=32768).scheduler)

    def duration(extra_tokens: int, extra_context: int) -> int:
        plan = StepPlan(
            num_tokens=max(tokens, decodes) + extra_tokens,  # each decode is one of them
            num_decodes=decodes,
            decode_context_tokens=context + extra_context,
            num_sampled=decodes,
        )
        return timer(plan)

    assert duration(0, 0) <= duration(1, 0)
    assert duration(0, 0) <= duration(0, 1000)


def test_a_lone_decode_on_the_h100_profile_takes_what_its_source_says() -> None:
    (served,) = simulate(engine(), roofline("h100-llama-3-8b"), [Arrival(0, 204, 64)])
    tpot_seconds = (served.token_ns[-1] - served.token_ns[0]) / 63 / 1e9
    assert tpot_seconds == pytest.approx(7.23e-3, rel=0.03)


def test_no_decode_is_faster_than_reading_the_weights_once() -> None:
    timer = roofline("h100-llama-3-8b").timer(engine().scheduler)
    floor_seconds = 15.0e9 / 3.35e12
    assert timer(StepPlan(num_tokens=1, num_decodes=1)) > floor_seconds * 1e9


@pytest.mark.parametrize(("rate_seconds", "output_tokens"), [(0.1, 1), (0.1, 7), (0.1, 300)])
def test_a_fixed_rate_server_takes_exactly_its_service_time(rate_seconds: float, output_tokens: int) -> None:
    arrivals = [Arrival(0, 100, output_tokens)] * 3 + [Arrival(10**9, 5000, output_tokens)]
    served = simulate(engine(budget=64), load_profile("fixed-rate"), arrivals)
    ends = [one.token_ns[-1] for one in served]
    assert ends == [round(rate_seconds * 1e9 * count) for count in (1, 2, 3)] + [10**9 + 10**8]


def test_a_saturated_fixed_rate_server_is_as_late_as_a_queue_must_be() -> None:
    arrivals = [Arrival(index * 50_000_000, 16, 4) for index in range(200)]  # 20/s offered to 10/s
    served = simulate(engine(), load_profile("fixed-rate"), arrivals)
    for index, one in enumerate(served):
        assert one.token_ns[-1] - one.arrival.arrival_ns == 100_000_000 + index * 50_000_000


@pytest.mark.parametrize(
    ("tokens", "padded"),
    [(1, 1), (2, 2), (3, 4), (5, 8), (248, 248), (249, 256), (257, 272), (512, 512), (513, None)],
)
def test_small_steps_are_padded_to_the_captured_graphs(tokens: int, padded: int | None) -> None:
    scheduler = SchedulerConfig(max_num_batched_tokens=8192, max_num_seqs=1024, max_model_len=8192)
    table = padded_tokens(capture_sizes(512, scheduler))
    assert (table[tokens] if tokens < len(table) else None) == padded


@pytest.mark.parametrize(
    ("limit", "budget", "seqs", "last"),
    [
        (512, 8192, 1024, (480, 496, 512)),  # the device's limit
        (512, 8192, 20, (24, 32, 40)),  # twice the sequences
        (512, 60, 30, (48, 56, 60)),  # the budget, captured although it is no multiple of 8
        (512, 8192, 150, (256, 272, 288)),  # nothing between the last multiple of 16 and twice the sequences
        (512, 8192, 13, (13, 16, 24)),  # the sequences themselves
        (0, 8192, 64, ()),
    ],
)
def test_captured_sizes_end_where_vllm_ends_them(limit: int, budget: int, seqs: int, last: tuple[int, ...]) -> None:
    scheduler = SchedulerConfig(max_num_batched_tokens=budget, max_num_seqs=seqs, max_model_len=8192)
    assert capture_sizes(limit, scheduler)[-3:] == last


def test_a_larger_budget_leaves_less_memory_for_the_cache() -> None:
    memory = load_profile("h100-llama-3-8b").memory
    assert memory.kv_bytes(0.92, 16384) < memory.kv_bytes(0.92, 2048) < memory.kv_bytes(0.95, 2048)
    assert memory.kv_bytes(0.1, 2048) == 0
