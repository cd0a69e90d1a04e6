from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from goodput.engines.simulated.config import CacheConfig, EngineConfig, SchedulerConfig
from goodput.engines.simulated.lockstep import LockstepScheduler
from goodput.engines.simulated.offline import Arrival, Lockstep, Stepwise, serve, simulate
from goodput.engines.simulated.profile import load_profile
from goodput.engines.simulated.request import SimRequest

MAX_LEN = 60


@st.composite
def configs(draw: st.DrawFn) -> EngineConfig:
    chunked = draw(st.booleans())
    budget = draw(st.integers(6, 80)) if chunked else draw(st.integers(MAX_LEN, 120))
    block_size = draw(st.sampled_from((1, 4, 16)))
    fewest = -(-MAX_LEN // block_size) + 1
    scheduler = SchedulerConfig(
        max_num_batched_tokens=budget,
        max_num_seqs=draw(st.integers(2, 6)),
        max_model_len=MAX_LEN,
        enable_chunked_prefill=chunked,
        scheduler_reserve_full_isl=draw(st.booleans()),
        watermark=draw(st.sampled_from((0.0, 0.1))),
    )
    cache = CacheConfig(
        block_size=block_size,
        num_gpu_blocks=draw(st.integers(fewest, 2 * fewest)),
        enable_prefix_caching=draw(st.booleans()),
    )
    return EngineConfig(model="m", served_model_name="m", scheduler=scheduler, cache=cache, vocab_size=1000)


requests = st.lists(st.tuples(st.integers(0, 2 * 10**8), st.integers(1, 40), st.integers(1, 20)), max_size=14)


def outcome(engine: Stepwise | Lockstep, rows: list[tuple[int, int, int]]) -> list[tuple[Any, ...]]:
    """(step's end, who ends with it, stamps, preemptions) of a run of all rows, which are added at their time."""
    found: list[tuple[Any, ...]] = []
    waiting = list(enumerate(sorted(rows)))
    now = 0
    while waiting or engine.has_work:
        if not engine.has_work:
            now = max(now, waiting[0][1][0])
        while waiting and waiting[0][1][0] <= now:
            uid, (arrival, prompt, output) = waiting.pop(0)
            request = SimRequest(uid=uid, num_prompt_tokens=prompt, target_output_tokens=output, arrival_ns=arrival)
            engine.add(request)
        now, ended = engine.step(now)
        found += [(now, request.uid, tuple(stamps), request.num_preemptions) for request, stamps in ended]
    return found


@given(configs(), requests)
@settings(max_examples=150, deadline=None)
def test_in_lockstep_every_step_is_the_same_to_the_nanosecond(
    config: EngineConfig, rows: list[tuple[int, int, int]]
) -> None:
    profile = load_profile("teaching")
    expected = outcome(Stepwise(config, profile), rows)
    event(f"preempted: {any(row[-1] for row in expected)}")
    assert outcome(Lockstep(config, profile), rows) == expected


def test_stamps_of_more_steps_than_are_kept_together_are_all_there() -> None:
    scheduler = SchedulerConfig(max_num_batched_tokens=64, max_num_seqs=2, max_model_len=20_000)
    cache = CacheConfig(block_size=16, num_gpu_blocks=4000)
    config = EngineConfig(model="m", served_model_name="m", scheduler=scheduler, cache=cache, vocab_size=1000)
    rows = [(0, 10, 9000), (10**9, 10, 5000)]
    profile = load_profile("instant")
    assert outcome(Lockstep(config, profile), rows) == outcome(Stepwise(config, profile), rows)


@given(configs(), requests)
@settings(max_examples=20, deadline=None)
def test_a_stream_of_results_is_the_list_in_the_order_of_ends(
    config: EngineConfig, rows: list[tuple[int, int, int]]
) -> None:
    arrivals = [Arrival(*row) for row in sorted(rows)]
    streamed = list(serve(config, load_profile("teaching"), iter(arrivals)))
    ends = [served.token_ns[-1] for _, served in streamed]
    assert ends == sorted(ends)
    assert [served for _, served in sorted(streamed, key=lambda pair: pair[0])] == simulate(
        config, load_profile("teaching"), arrivals
    )


def test_what_lockstep_cannot_do_is_refused() -> None:
    scheduler = SchedulerConfig(max_num_batched_tokens=64, max_num_seqs=2, max_model_len=64)
    cache = CacheConfig(block_size=16, num_gpu_blocks=10)
    with pytest.raises(ValueError, match="long_prefill_token_threshold"):
        LockstepScheduler(replace(scheduler, long_prefill_token_threshold=8), cache)
    with pytest.raises(ValueError, match="with ids"):
        LockstepScheduler(scheduler, cache).add(
            SimRequest(uid=0, num_prompt_tokens=2, target_output_tokens=1, prompt_token_ids=[5, 6])
        )
