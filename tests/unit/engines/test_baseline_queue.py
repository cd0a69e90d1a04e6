import asyncio
from collections.abc import Callable

import pytest
from tests.unit.engines.scripted_model import ScriptedModel

from goodput.engines.api.engine import Request
from goodput.engines.api.stats import RequestStats
from goodput.engines.simulated.tokens import EOS
from goodput.engines.transformers.model import Choice
from goodput.engines.transformers.queue import SequentialQueue
from goodput.engines.transformers.request import BaselineRequest


class Sink:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.gave_up = False
        self.reason: str | None = None
        self.ended = asyncio.Event()
        self.heard = asyncio.Event()

    def token(self, request: Request) -> None:
        self.tokens.append(request.output_token_ids[-1])
        self.reason = request.finish_reason
        self.heard.set()
        if self.reason is not None:
            self.ended.set()

    def aborted(self) -> None:
        self.gave_up = True
        self.ended.set()


def request(tokens: int = 4, *, stop: bool = False, prompt: int = 10) -> BaselineRequest:
    return BaselineRequest(
        prompt=[300] * prompt,
        max_tokens=tokens,
        min_tokens=0,
        stop_ids=frozenset({EOS}) if stop else frozenset(),
        choice=Choice(temperature=0.0),
    )


class Rig:
    def __init__(self, model: ScriptedModel) -> None:
        self.model = model
        self.stats = RequestStats(1000)
        self.failures: list[bool] = []
        self.queue = SequentialQueue(model, self.stats, lambda: self.failures.append(True))

    def submit(self, one: BaselineRequest) -> Sink:
        sink = Sink()
        self.queue.submit(one, sink)
        return sink


def run(story: Callable[[Rig], object], model: ScriptedModel) -> Rig:
    """Plays a story inside an event loop."""

    async def main() -> Rig:
        rig = Rig(model)
        outcome = story(rig)
        if asyncio.iscoroutine(outcome):
            await asyncio.wait_for(outcome, 60)
        rig.queue.abort_all()
        rig.queue.close()
        return rig

    return asyncio.run(main())


def test_requests_are_served_one_at_a_time_in_order_of_arrival() -> None:
    order: list[int] = []

    async def story(rig: Rig) -> None:
        sinks = [rig.submit(request(tokens=3, prompt=number + 1)) for number in range(5)]
        for number, sink in enumerate(sinks):
            await sink.ended.wait()
            order.append(number)
            assert sink.tokens == [300, 301, 302]
            assert sink.reason == "length"
        await rig.queue.wait_idle()

    rig = run(story, ScriptedModel())
    assert [len(prompt) for prompt, _ in rig.model.asked] == [1, 2, 3, 4, 5]
    assert rig.model.most_at_once == 1
    assert rig.stats.finished["length"] == 5
    assert rig.stats.prompt_tokens == 15
    assert rig.stats.generation_tokens == 15


def test_the_queue_is_visible_while_one_runs() -> None:
    async def story(rig: Rig) -> None:
        sinks = [rig.submit(request(tokens=2)) for _ in range(3)]
        assert (rig.stats.running, rig.stats.waiting) == (1, 2)
        rig.model.release(2)
        await sinks[0].ended.wait()
        rig.model.release(1)
        await sinks[1].heard.wait()
        assert (rig.stats.running, rig.stats.waiting) == (1, 1)
        rig.model.release(3)
        await rig.queue.wait_idle()
        assert (rig.stats.running, rig.stats.waiting) == (0, 0)

    rig = run(story, ScriptedModel(gated=True))
    assert rig.stats.ttft.cumulative()[-1][1] == rig.stats.e2e.cumulative()[-1][1] == 3
    assert rig.stats.itl.cumulative()[-1][1] == 3


def test_the_end_of_text_ends_a_request_unless_it_is_ignored() -> None:
    script = [300, EOS, 301, 302]

    async def story(rig: Rig) -> None:
        stopping, ignoring = rig.submit(request(stop=True)), rig.submit(request(stop=False))
        await ignoring.ended.wait()
        assert (stopping.tokens, stopping.reason) == ([300, EOS], "stop")
        assert (ignoring.tokens, ignoring.reason) == (script, "length")

    rig = run(story, ScriptedModel(script))
    assert rig.stats.finished == {"stop": 1, "length": 1, "abort": 0, "error": 0, "repetition": 0}


def test_a_request_whose_client_left_stops_with_its_next_token() -> None:
    async def story(rig: Rig) -> None:
        left, after = request(tokens=500), request(tokens=2)
        sink, next_sink = rig.submit(left), rig.submit(after)
        rig.model.release(1)
        await sink.heard.wait()
        rig.queue.abort(left)
        rig.queue.abort(left)
        assert rig.stats.running == 1  # the model still works
        rig.model.release(3)
        await next_sink.ended.wait()
        assert sink.tokens == [300]
        await rig.queue.wait_idle()

    rig = run(story, ScriptedModel(gated=True))
    assert rig.stats.finished["abort"] == 1
    assert rig.stats.finished["length"] == 1
    assert rig.stats.generation_tokens == 3


def test_a_request_that_left_while_waiting_is_never_generated() -> None:
    async def story(rig: Rig) -> None:
        first, second = request(tokens=2), request(tokens=2, prompt=7)
        sink = rig.submit(first)
        rig.submit(second)
        rig.queue.abort(second)
        assert rig.stats.waiting == 0
        rig.model.release(2)
        await sink.ended.wait()
        await rig.queue.wait_idle()

    rig = run(story, ScriptedModel(gated=True))
    assert [len(prompt) for prompt, _ in rig.model.asked] == [10]


def test_giving_up_tells_every_stream() -> None:
    async def story(rig: Rig) -> None:
        sinks = [rig.submit(request(tokens=500)) for _ in range(3)]
        rig.queue.abort_all()
        assert all(sink.gave_up for sink in sinks)
        assert rig.queue.num_unfinished == 0
        rig.model.release(1)
        await rig.queue.wait_idle()

    assert run(story, ScriptedModel(gated=True)).stats.finished["abort"] == 3


def test_a_model_that_fails_ends_everything_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def story(rig: Rig) -> None:
        sinks = [rig.submit(request(tokens=5)) for _ in range(2)]
        await asyncio.gather(*(sink.ended.wait() for sink in sinks))
        assert all(sink.gave_up for sink in sinks)
        assert rig.failures == [True]
        late = rig.submit(request())
        assert late.gave_up

    rig = run(story, ScriptedModel([300, -1]))
    assert rig.queue.failed
    assert rig.stats.finished["error"] == 1
    assert "out of memory" in caplog.text


def test_an_output_that_ends_too_early_is_no_success() -> None:
    async def story(rig: Rig) -> None:
        sink = rig.submit(request(tokens=5))
        await sink.ended.wait()
        assert sink.gave_up

    rig = run(story, ScriptedModel([300, 301]))
    assert rig.stats.finished["error"] == 1
    assert rig.stats.finished["length"] == 0
