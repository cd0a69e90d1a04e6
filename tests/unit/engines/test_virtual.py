"""The engine as a server on a clock that jumps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from goodput.engines.simulated import arguments
from goodput.engines.simulated.profile import load_profile
from goodput.engines.simulated.virtual import Arrival, VirtualEngine, simulate

FOREVER = 10**15


def engine(*flags: str, profile: str = "teaching") -> VirtualEngine:
    loaded = load_profile(profile)
    return VirtualEngine(arguments.resolve(arguments.parse(["m", *flags]), loaded), loaded)


def drain(server: VirtualEngine) -> dict[int, list[int]]:
    """Stamps of all tokens until nothing happens any more."""
    stamps: dict[int, list[int]] = {}
    while server.now_ns < FOREVER:
        for served in server.advance(FOREVER):
            stamps.setdefault(served.uid, []).append(server.now_ns)
    return stamps


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 3000), st.integers(1, 20)), min_size=1, max_size=20))
def test_it_serves_as_the_list_of_arrivals_is_served(asked: list[tuple[int, int, int]]) -> None:
    arrivals = [Arrival(*each) for each in sorted(asked)]
    loaded = load_profile("teaching")
    config = arguments.resolve(arguments.parse(["m", "--max-num-batched-tokens", "512", "--max-num-seqs", "8"]), loaded)
    server = VirtualEngine(config, loaded)
    stamps: dict[int, list[int]] = {}
    for arrival in arrivals:
        while server.now_ns < arrival.arrival_ns:
            for served in server.advance(arrival.arrival_ns):
                stamps.setdefault(served.uid, []).append(server.now_ns)
        server.submit(arrival.prompt_tokens, arrival.output_tokens)
    for uid, more in drain(server).items():
        stamps.setdefault(uid, []).extend(more)
    assert [tuple(stamps[uid]) for uid in range(len(arrivals))] == [
        served.token_ns for served in simulate(config, loaded, arrivals)
    ]


def test_a_request_that_comes_while_a_step_runs_is_seen_by_the_next_one() -> None:
    server = engine()
    server.submit(1000, 3)
    server.advance(1)
    late = server.submit(100, 1)
    first = server.advance(FOREVER)
    assert [served.uid for served in first] == [0]
    second = server.advance(FOREVER)
    assert {served.uid for served in second} == {0, late}


def test_an_output_ends_at_the_model_length_and_a_prompt_of_that_length_is_refused() -> None:
    server = engine("--max-model-len", "100")
    assert server.submit(100, 1) is None
    assert server.submit(97, 50) == 0
    assert len(drain(server)[0]) == 3


def test_aborted_requests_give_their_blocks_back_and_are_counted() -> None:
    server = engine()
    running, waiting = server.submit(5000, 10), server.submit(5000, 10)
    assert running is not None
    assert waiting is not None
    server.advance(1)
    assert not server.reset_prefix_cache(), "a step runs"
    pending = server.submit(10, 10)
    assert pending is not None
    for uid in (running, waiting, pending):
        server.abort(uid)
    assert drain(server) == {}
    sample = server.sample()
    assert (sample["running"], sample["waiting"], sample["kv_usage"]) == (0, 0, 0)
    assert sample["finished"]["abort"] == 3
    assert server.reset_prefix_cache()


def test_prompts_that_begin_alike_are_found_in_the_cache() -> None:
    server = engine()
    ids = list(range(100, 260))
    for tail in (1, 2):
        server.submit(161, 1, [*ids, tail])
        drain_one = server.advance(FOREVER)
        assert len(drain_one) == 1
    assert server.sample()["prefix_hits"] == 160
