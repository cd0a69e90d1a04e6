from collections.abc import Sequence
from typing import Any

from goodput.engines.simulated.config import CacheConfig, SchedulerConfig
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.scheduler import Scheduler, StepPlan


def scheduler(*, blocks: int = 1000, block_size: int = 16, caching: bool = True, **settings: Any) -> Scheduler:
    values = {"max_num_batched_tokens": 100, "max_num_seqs": 8, "max_model_len": 400} | settings
    cache = CacheConfig(block_size=block_size, num_gpu_blocks=blocks + 1, enable_prefix_caching=caching)
    return Scheduler(SchedulerConfig(**values), cache)


def request(uid: int, prompt: int, output: int = 4, ids: Sequence[int] | None = None) -> SimRequest:
    return SimRequest(uid=uid, num_prompt_tokens=prompt, target_output_tokens=output, prompt_token_ids=ids)


def step(target: Scheduler) -> tuple[StepPlan, list[SimRequest]]:
    plan = target.schedule()
    yielding = target.advance(plan)
    for item in yielding:
        if item.prompt_token_ids is not None:
            item.output_token_ids.append(7)
        if item.num_output_tokens >= item.target_output_tokens:
            target.finish(item, "length")
    return plan, yielding


def chunks(plan: StepPlan) -> list[tuple[int, int]]:
    return [(item.uid, count) for item, count in plan.scheduled]


def test_decodes_come_first_and_prefill_fills_the_budget() -> None:
    target = scheduler()
    target.add(request(0, 10))
    step(target)
    target.add(request(1, 150))
    assert chunks(step(target)[0]) == [(0, 1), (1, 99)]
    plan, yielding = step(target)
    assert chunks(plan) == [(0, 1), (1, 51)]
    assert [item.uid for item in yielding] == [0, 1]


def test_a_token_comes_only_with_the_end_of_the_prefill() -> None:
    target = scheduler()
    target.add(request(0, 250))
    assert [len(step(target)[1]) for _ in range(3)] == [0, 0, 1]


def test_a_large_budget_takes_several_prompts_in_one_step() -> None:
    target = scheduler(max_num_batched_tokens=400)
    for uid in range(3):
        target.add(request(uid, 100))
    assert chunks(step(target)[0]) == [(0, 100), (1, 100), (2, 100)]


def test_the_number_of_running_requests_is_limited() -> None:
    target = scheduler(max_num_seqs=2)
    for uid in range(3):
        target.add(request(uid, 10, output=2))
    assert chunks(step(target)[0]) == [(0, 10), (1, 10)]
    step(target)
    assert chunks(step(target)[0]) == [(2, 10)]


def test_active_requests_can_be_limited_below_the_sequences() -> None:
    target = scheduler(max_num_seqs=4, max_num_active_seqs=1)
    target.add(request(0, 10))
    target.add(request(1, 10))
    assert chunks(step(target)[0]) == [(0, 10)]


def test_a_long_prefill_is_cut_only_beside_other_requests() -> None:
    target = scheduler(long_prefill_token_threshold=30)
    target.add(request(0, 90))
    assert chunks(step(target)[0]) == [(0, 90)]
    target.add(request(1, 90))
    assert chunks(step(target)[0]) == [(0, 1), (1, 30)]


def test_the_adaptive_threshold_is_at_least_a_fair_share() -> None:
    target = scheduler(long_prefill_token_threshold=10, long_prefill_token_threshold_adaptive=True)
    target.add(request(0, 90))
    target.add(request(1, 90))
    assert chunks(step(target)[0]) == [(0, 50), (1, 50)]


def test_without_chunked_prefill_a_prompt_waits_for_a_step_that_holds_it() -> None:
    target = scheduler(enable_chunked_prefill=False, max_num_batched_tokens=400)
    target.add(request(0, 300, output=1))
    target.add(request(1, 200, output=1))
    assert chunks(step(target)[0]) == [(0, 300)]
    assert chunks(step(target)[0]) == [(1, 200)]


def test_a_waiting_request_is_not_admitted_by_preemption() -> None:
    target = scheduler(blocks=25, block_size=16, caching=False)
    target.add(request(0, 300, output=50))
    for _ in range(3):
        step(target)
    target.add(request(1, 200))
    plan, _ = step(target)
    assert chunks(plan) == [(0, 1)]
    assert plan.preempted == []


def test_the_newest_request_is_preempted_and_recomputed() -> None:
    target = scheduler(blocks=4, block_size=4, caching=False, max_model_len=16)
    old, new = request(0, 7, output=9), request(1, 7, output=5)
    target.add(old)
    target.add(new)
    step(target)  # both hold 2 of 4 blocks
    step(target)
    plan, _ = step(target)  # the old one needs a third block
    assert [item.uid for item in plan.preempted] == [1]
    assert chunks(plan) == [(0, 1)]
    assert (new.num_computed_tokens, new.block_ids, new.num_preemptions) == (0, [], 1)
    while not old.finish_reason:
        step(target)
    plan, _ = step(target)
    assert chunks(plan) == [(1, 7 + new.num_output_tokens - 1)]  # prompt and generated tokens


def test_a_preempted_request_finds_its_blocks_if_nobody_took_them() -> None:
    target = scheduler(blocks=5, block_size=4, max_model_len=20)
    target.add(request(0, 7, output=9))
    target.add(request(1, 7, output=9))
    preempted: list[SimRequest] = []
    while not preempted:
        preempted = step(target)[0].preempted
    assert target.pool.find(preempted[0].key_of_block(0, 4)) is not None


def test_a_repeated_prompt_is_taken_from_the_cache_except_for_its_last_token() -> None:
    target = scheduler()
    prompt = list(range(64))
    target.add(request(0, 64, output=1, ids=prompt))
    step(target)
    second = request(1, 64, output=1, ids=prompt)
    target.add(second)
    assert chunks(step(target)[0]) == [(1, 16)]
    assert second.num_cached_tokens == 48
    assert (target.prefix_queries, target.prefix_hits) == (128, 48)


def test_a_prompt_that_differs_early_shares_nothing() -> None:
    target = scheduler()
    target.add(request(0, 64, output=1, ids=list(range(64))))
    step(target)
    target.add(request(1, 64, output=1, ids=[99, *range(1, 64)]))
    assert chunks(step(target)[0]) == [(1, 64)]


def test_a_follow_up_finds_generated_tokens_too() -> None:
    target = scheduler(block_size=4)
    first = request(0, 6, output=7, ids=list(range(6)))
    target.add(first)
    while first.finish_reason is None:
        step(target)
    follow_up = list(range(6)) + first.output_token_ids + [50, 51]
    target.add(request(1, len(follow_up), ids=follow_up))
    assert step(target)[0].scheduled[0][0].num_cached_tokens == 12


def test_a_reset_cache_gives_no_hits() -> None:
    target = scheduler()
    target.add(request(0, 64, output=1, ids=list(range(64))))
    step(target)
    assert target.reset_prefix_cache()
    target.add(request(1, 64, output=1, ids=list(range(64))))
    assert chunks(step(target)[0]) == [(1, 64)]


def test_reset_is_refused_while_a_request_runs() -> None:
    target = scheduler()
    running = request(0, 64)
    target.add(running)
    step(target)
    assert not target.reset_prefix_cache()
    target.abort(running)
    assert target.reset_prefix_cache()


def test_the_watermark_keeps_blocks_free_for_running_requests() -> None:
    target = scheduler(blocks=30, block_size=16, watermark=0.5)
    target.add(request(0, 100))
    step(target)
    target.add(request(1, 200))
    assert chunks(step(target)[0]) == [(0, 1)]


def test_without_reserving_the_whole_prompt_a_chunk_is_enough_to_be_admitted() -> None:
    for reserve, admitted in ((True, 0), (False, 1)):
        target = scheduler(blocks=25, scheduler_reserve_full_isl=reserve, caching=False)
        target.add(request(0, 99, output=20))
        step(target)
        target.add(request(1, 390, output=1))
        assert len(step(target)[0].scheduled) - 1 == admitted


def test_sums_of_a_step_are_those_of_its_chunks() -> None:
    target = scheduler()
    target.add(request(0, 10))
    step(target)
    target.add(request(1, 150))
    plan, _ = step(target)
    assert (plan.num_tokens, plan.num_decodes, plan.decode_context_tokens, plan.num_sampled) == (100, 1, 11, 1)
    assert plan.prefill_attention == 99 * 99 / 2
    plan, _ = step(target)
    assert plan.prefill_attention == 51 * (99 + 51 / 2)
