"""The engine on its own clock: scheduler and profile, one step after the other, integer nanoseconds.

The core never waits and never reads a clock. It is told when a step begins and says when it ends.
"""

import math
from dataclasses import dataclass

from goodput.engines.simulated.config import EngineConfig
from goodput.engines.simulated.profile import Profile
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.scheduler import Scheduler, StepPlan
from goodput.engines.simulated.tokens import EOS, ToyTokenizer, block_hash, mix


@dataclass(slots=True)
class StepResult:
    """One computed step: its plan, its times, and who got a token at its end (ended ones have a reason).

    `previous_token_ns` has the stamp of each one's token before this, or -1. `aborted` were taken out.
    """

    plan: StepPlan
    begin_ns: int
    end_ns: int
    yielding: list[SimRequest]
    previous_token_ns: list[int]
    aborted: list[SimRequest]


class EngineCore:
    """Runs steps. Calls alternate `begin_step` and `end_step`; requests may be added at any time between."""

    def __init__(self, config: EngineConfig, profile: Profile) -> None:
        self.config = config
        self.profile = profile
        self.scheduler = Scheduler(config.scheduler, config.cache, max_running=profile.max_running)
        self._tokenizer = ToyTokenizer(config.vocab_size)
        self._seed = mix(config.seed)
        self._duration_ns = profile.timer(config.scheduler)
        self._plan: StepPlan | None = None
        self._begin_ns = 0
        self._end_ns = 0
        self._aborted: list[SimRequest] = []

    @property
    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return self.scheduler.has_work

    @property
    def plan(self) -> StepPlan | None:
        """The step that has begun and not ended, if there is one."""
        return self._plan

    def add(self, request: SimRequest) -> None:
        """Queues a request; it is first looked at when the next step begins."""
        request.token_seed = mix(self._seed ^ _origin(request))
        self.scheduler.add(request)

    def abort(self, request: SimRequest) -> None:
        """Ends a request without more tokens, at once or at the end of the running step."""
        if request.finish_reason is not None or request in self._aborted:
            return
        if self._plan is None:
            self.scheduler.abort(request)
        else:
            self._aborted.append(request)

    def begin_step(self, now_ns: int) -> int | None:
        """Plans the step that begins now. Returns when it ends, or None if there is nothing to do."""
        plan = self.scheduler.schedule()
        if not plan.scheduled:
            return None
        for request in plan.admitted:
            if request.scheduled_ns < 0:
                request.scheduled_ns = now_ns
        self._plan = plan
        self._begin_ns = now_ns
        self._end_ns = now_ns + self._duration_ns(plan)
        return self._end_ns

    def end_step(self) -> StepResult:
        """Completes the step that has begun: tokens, ends, and the aborts that came meanwhile."""
        plan, self._plan = self._plan, None
        if plan is None:
            raise RuntimeError("end_step without begin_step")
        yielding = self.scheduler.advance(plan)
        aborted, self._aborted = self._aborted, []
        if aborted:
            yielding = [request for request in yielding if request not in aborted]
            for request in aborted:
                self.scheduler.abort(request)
        end_ns = self._end_ns
        previous = [request.last_token_ns for request in yielding]
        for request in yielding:
            if request.first_token_ns < 0:
                request.first_token_ns = end_ns
            request.last_token_ns = end_ns
            if request.prompt_token_ids is not None:
                self._generate(request)
            if request.num_output_tokens >= request.target_output_tokens:
                self.scheduler.finish(request, "stop" if request.stops_early else "length")
        return StepResult(plan, self._begin_ns, end_ns, yielding, previous, aborted)

    def target_output_tokens(self, uid: int, *, limit: int, min_tokens: int, ignore_eos: bool) -> tuple[int, bool]:
        """(length, whether it ends by itself) of a request's output, at most `limit` tokens.

        A request that may stop does so after a length drawn from a geometric distribution around the
        profile's mean, fixed by the engine's seed and the request's number.
        """
        if ignore_eos:
            return limit, False
        draw = mix(self.config.seed ^ mix(uid + 1)) / 2.0**64
        length = max(min_tokens, 1, _geometric(draw, self.profile.mean_output_tokens))
        return (length, True) if length <= limit else (limit, False)

    def _generate(self, request: SimRequest) -> None:
        """Appends the token just generated, which blocks that others may find hold."""
        if request.stops_early and request.num_output_tokens >= request.target_output_tokens:
            token = EOS
        else:
            token = self._tokenizer.generated(request.token_seed, request.num_output_tokens)
        request.output_token_ids.append(token)


def _geometric(draw: float, mean: int) -> int:
    """Inverse of the geometric distribution on 1, 2, … with the given mean, at 0 <= draw < 1."""
    if mean <= 1:
        return 1
    return 1 + int(math.log1p(-draw) / math.log1p(-1.0 / mean))


def _origin(request: SimRequest) -> int:
    """What its tokens follow from, besides the engine's seed: the prompt at temperature 0, else its number."""
    if request.greedy and request.prompt_token_ids is not None:
        return block_hash(-2, tuple(request.prompt_token_ids))
    return request.uid
