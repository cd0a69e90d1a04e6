from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodput.engines.simulated.config import CacheConfig, EngineConfig, SchedulerConfig
from goodput.engines.simulated.core import EngineCore
from goodput.engines.simulated.profile import load_profile
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.virtual import Arrival, simulate

MAX_LEN = 60


@dataclass(frozen=True)
class Case:
    """A config and what happens to it: requests with the step of their arrival and maybe of their abort."""

    config: EngineConfig
    requests: tuple[tuple[int, int, int, int | None, int], ...]


@st.composite
def cases(draw: st.DrawFn, *, aborts: bool = True) -> Case:
    chunked = draw(st.booleans())
    budget = draw(st.integers(4, 80)) if chunked else draw(st.integers(MAX_LEN, 120))
    block_size = draw(st.sampled_from((1, 4, 16)))
    fewest = -(-MAX_LEN // block_size) + 1
    scheduler = SchedulerConfig(
        max_num_batched_tokens=budget,
        max_num_seqs=draw(st.integers(1, min(6, budget))),
        max_model_len=MAX_LEN,
        enable_chunked_prefill=chunked,
        long_prefill_token_threshold=draw(st.sampled_from((0, 3, 17))),
        scheduler_reserve_full_isl=draw(st.booleans()),
    )
    cache = CacheConfig(
        block_size=block_size,
        num_gpu_blocks=draw(st.integers(fewest, 3 * fewest)),
        enable_prefix_caching=draw(st.booleans()),
    )
    one = st.tuples(
        st.integers(1, 40),
        st.integers(1, 20),
        st.integers(0, 30),
        st.one_of(st.none(), st.integers(0, 40)) if aborts else st.none(),
        st.integers(0, 2),
    )
    requests = tuple(sorted(draw(st.lists(one, min_size=1, max_size=12)), key=lambda row: row[2]))
    config = EngineConfig(model="m", served_model_name="m", scheduler=scheduler, cache=cache, vocab_size=1000)
    return Case(config, requests)


def run(case: Case, check: Any = None) -> list[SimRequest]:
    """Steps through a case; `check(core, plan end)` sees every step between planning and completion."""
    core = EngineCore(case.config, load_profile("instant"))
    requests = [
        SimRequest(
            uid=uid,
            num_prompt_tokens=prompt,
            target_output_tokens=output,
            # few different prompts, so that prefixes are shared
            prompt_token_ids=[family] * prompt,
        )
        for uid, (prompt, output, _, _, family) in enumerate(case.requests)
    ]
    now = 0
    for number in range(5000):
        for request, (_, _, arrival, _, _) in zip(requests, case.requests, strict=True):
            if arrival == number:
                core.add(request)
        for request, (_, _, arrival, abort, _) in zip(requests, case.requests, strict=True):
            if abort is not None and number == max(abort, arrival):
                core.abort(request)
        end = core.begin_step(now)
        if end is None:
            assert not core.has_work, "requests wait and nothing can run"
            if number > 60:
                return requests
            continue
        if check is not None:
            check(core)
        core.end_step()
        now = end
    pytest.fail("the engine does not come to an end")


@given(cases())
@settings(max_examples=30, deadline=None)
def test_the_budget_and_the_sequences_are_never_exceeded(case: Case) -> None:
    def check(core: EngineCore) -> None:
        plan = core.plan
        assert plan is not None
        assert plan.num_tokens == sum(count for _, count in plan.scheduled) <= limit.max_num_batched_tokens
        assert all(count > 0 for _, count in plan.scheduled)
        assert len(core.scheduler.running) <= limit.max_num_seqs

    limit = case.config.scheduler
    run(case, check)


@given(cases())
@settings(max_examples=30, deadline=None)
def test_blocks_are_neither_overallocated_nor_leaked(case: Case) -> None:
    def check(core: EngineCore) -> None:
        pool, size = core.scheduler.pool, case.config.cache.block_size
        assert core.plan is not None
        held = Counter(block for request in core.scheduler.running for block in request.block_ids)
        assert len(held) + pool.num_free == pool.num_blocks
        assert all(not pool.is_free(block) for block in held)
        for request in core.scheduler.running:
            assert len(request.block_ids) == -(-request.num_computed_tokens // size)
            assert len(set(request.block_ids)) == len(request.block_ids)
        for request in core.scheduler.waiting:
            assert request.block_ids == []
        seen.append(core)

    seen: list[EngineCore] = []
    run(case, check)
    if seen:
        assert seen[-1].scheduler.pool.num_free == case.config.cache.num_usable_blocks
        assert seen[-1].scheduler.reset_prefix_cache()


@given(cases())
@settings(max_examples=30, deadline=None)
def test_tokens_are_conserved(case: Case) -> None:
    def check(core: EngineCore) -> None:
        assert core.plan is not None
        for request, _ in core.plan.scheduled:
            assert request.num_computed_tokens <= request.num_tokens
        for request in core.scheduler.running:
            assert len(request.output_token_ids) == request.num_output_tokens

    for request, (_, output, _, abort, _) in zip(run(case, check), case.requests, strict=True):
        if abort is None:
            assert request.finish_reason == "length"
            assert request.num_output_tokens == output
            assert request.num_computed_tokens == request.num_prompt_tokens + output - 1
        else:
            assert request.finish_reason in ("length", "abort")
            assert request.num_output_tokens <= output


@given(cases())
@settings(max_examples=30, deadline=None)
def test_a_decode_never_waits_behind_a_newer_prefill(case: Case) -> None:
    def check(core: EngineCore) -> None:
        assert core.plan is not None
        scheduled = [request.uid for request, _ in core.plan.scheduled]
        # in order of admission, without gaps: whoever is left out is newer than all who are served
        assert scheduled == [request.uid for request in core.scheduler.running][: len(scheduled)]

    run(case, check)


@given(cases(aborts=False))
@settings(max_examples=30, deadline=None)
def test_first_come_is_first_admitted_and_nobody_starves(case: Case) -> None:
    requests = run(case)
    admitted = [request.scheduled_ns for request in requests]
    assert admitted == sorted(admitted)
    assert all(request.finish_reason == "length" for request in requests)


@given(cases())
@settings(max_examples=30, deadline=None)
def test_the_same_input_gives_the_same_output(case: Case) -> None:
    def trace(requests: list[SimRequest]) -> list[Any]:
        return [(r.first_token_ns, r.last_token_ns, r.num_preemptions, r.output_token_ids) for r in requests]

    assert trace(run(case)) == trace(run(case))


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 30), st.integers(1, 10)), max_size=20))
@settings(max_examples=30, deadline=None)
def test_virtual_time_serves_every_arrival_in_order_of_its_tokens(rows: list[tuple[int, int, int]]) -> None:
    scheduler = SchedulerConfig(max_num_batched_tokens=32, max_num_seqs=4, max_model_len=MAX_LEN)
    cache = CacheConfig(block_size=4, num_gpu_blocks=40)
    config = EngineConfig(model="m", served_model_name="m", scheduler=scheduler, cache=cache, vocab_size=1000)
    arrivals = [Arrival(*row) for row in sorted(rows)]
    for served in simulate(config, load_profile("teaching"), arrivals):
        assert len(served.token_ns) == served.arrival.output_tokens
        assert served.arrival.arrival_ns < served.token_ns[0]
        assert list(served.token_ns) == sorted(set(served.token_ns))
