import asyncio
from collections.abc import Awaitable, Callable

from goodput.engines.api.engine import Request
from goodput.engines.simulated.config import CacheConfig, EngineConfig, SchedulerConfig
from goodput.engines.simulated.core import EngineCore
from goodput.engines.simulated.loop import EngineLoop, Lateness
from goodput.engines.simulated.profile import load_profile
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.stats import EngineStats
from goodput.engines.simulated.virtual import Arrival, simulate

SCHEDULER = SchedulerConfig(max_num_batched_tokens=64, max_num_seqs=4, max_model_len=2000)
CACHE = CacheConfig(block_size=16, num_gpu_blocks=500)
CONFIG = EngineConfig(model="m", served_model_name="m", scheduler=SCHEDULER, cache=CACHE, vocab_size=1000)


class Sink:
    """Collects what the engine says about a request."""

    def __init__(self) -> None:
        self.stamps: list[int] = []
        self.first = asyncio.Event()
        self.given_up = False

    def token(self, request: Request) -> None:
        self.stamps.append(request.last_token_ns)
        self.first.set()

    def aborted(self) -> None:
        self.given_up = True


def request(uid: int, prompt: int = 100, output: int = 5) -> SimRequest:
    ids = [300 + uid] * prompt
    return SimRequest(uid=uid, num_prompt_tokens=prompt, target_output_tokens=output, prompt_token_ids=ids)


def run(story: Callable[[EngineLoop], Awaitable[None]]) -> EngineLoop:
    async def told() -> EngineLoop:
        loop = EngineLoop(EngineCore(CONFIG, load_profile("instant")), EngineStats(2000))
        await story(loop)
        return loop

    return asyncio.run(told())


def test_real_time_gives_the_stamps_of_virtual_time() -> None:
    async def story(loop: EngineLoop) -> None:
        sink, one = Sink(), request(0)
        loop.submit(one, sink)
        await loop.wait_idle()
        (served,) = simulate(CONFIG, load_profile("instant"), [Arrival(0, 100, 5)])
        assert [stamp - one.arrival_ns for stamp in sink.stamps] == list(served.token_ns)

    run(story)


def test_all_requests_end_and_are_counted() -> None:
    async def story(loop: EngineLoop) -> None:
        sinks = [Sink() for _ in range(9)]
        for uid, sink in enumerate(sinks):
            loop.submit(request(uid), sink)
        await loop.wait_idle()
        assert [len(sink.stamps) for sink in sinks] == [5] * 9

    loop = run(story)
    assert loop.num_unfinished == 0
    assert loop.stats.finished["length"] == 9
    assert loop.stats.generation_tokens == 45
    assert loop.stats.running == loop.stats.waiting == 0


def test_an_aborted_request_gets_no_more_tokens_and_frees_its_blocks() -> None:
    async def story(loop: EngineLoop) -> None:
        sink, one = Sink(), request(0, output=1000)
        loop.submit(one, sink)
        await sink.first.wait()
        assert not loop.reset_prefix_cache()
        loop.abort(one)
        seen = len(sink.stamps)
        await loop.wait_idle()
        other = Sink()
        loop.submit(request(1), other)
        await loop.wait_idle()
        assert len(sink.stamps) == seen
        assert len(other.stamps) == 5
        assert loop.reset_prefix_cache()

    loop = run(story)
    assert loop.stats.finished["abort"] == 1
    assert loop.stats.kv_usage == 0.0


def test_a_request_can_be_aborted_before_it_is_looked_at() -> None:
    async def story(loop: EngineLoop) -> None:
        running, waiting = Sink(), Sink()
        loop.submit(request(0), running)
        late = request(1)
        loop.submit(late, waiting)
        loop.abort(late)
        await loop.wait_idle()
        assert (len(running.stamps), len(waiting.stamps)) == (5, 0)

    assert run(story).stats.finished["abort"] == 1


def test_aborting_twice_or_after_the_end_changes_nothing() -> None:
    async def story(loop: EngineLoop) -> None:
        one = request(0)
        loop.submit(one, Sink())
        await loop.wait_idle()
        loop.abort(one)
        assert one.finish_reason == "length"

    assert run(story).stats.finished["abort"] == 0


def test_giving_up_tells_everybody() -> None:
    async def story(loop: EngineLoop) -> None:
        sinks = [Sink() for _ in range(6)]
        for uid, sink in enumerate(sinks):
            loop.submit(request(uid, output=1000), sink)
        await sinks[0].first.wait()
        loop.abort_all()
        assert all(sink.given_up for sink in sinks)
        loop.submit(
            request(6), Sink()
        )  # aborts take effect when the step that runs has ended: one more request sees that
        await loop.wait_idle()

    assert run(story).stats.finished["abort"] == 6


def test_lateness_is_counted_in_tenths_of_a_millisecond() -> None:
    lateness = Lateness()
    assert "p99 0.0 ms" in str(lateness)
    for late_ns in (-300_000, *[250_000] * 98, 7_010_000):
        lateness.add(late_ns)
    assert str(lateness) == "100, handled after their planned end by p50 0.3 ms, p99 0.3 ms, at most 7.1 ms"
