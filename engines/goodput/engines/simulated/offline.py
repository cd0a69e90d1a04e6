"""A list of arrivals in, every request's times out: the engine without waiting, and without tokens."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from goodput.engines.simulated.config import EngineConfig
from goodput.engines.simulated.core import EngineCore
from goodput.engines.simulated.lockstep import LockstepScheduler
from goodput.engines.simulated.profile import Profile
from goodput.engines.simulated.request import SimRequest

#: A request that ended with a step, and the stamps of all its tokens.
Ended = tuple[SimRequest, list[int]]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request to come: when (engine clock), and how many tokens in and out. Its prompt is its own."""

    arrival_ns: int
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Served:
    """What became of an arrival. `token_ns` has the stamp of each of its tokens."""

    arrival: Arrival
    token_ns: tuple[int, ...]
    num_preemptions: int


def simulate(config: EngineConfig, profile: Profile, arrivals: Sequence[Arrival]) -> list[Served]:
    """Runs the engine until all arrivals (in order of time) are served; as many steps as that takes."""
    return [served for _, served in sorted(serve(config, profile, arrivals), key=itemgetter(0))]


def serve(config: EngineConfig, profile: Profile, arrivals: Iterable[Arrival]) -> Iterator[tuple[int, Served]]:
    """The same as a stream: (number of the arrival, what became of it) as requests end.

    Memory is that of the requests that are waiting or running.

    Raises:
        RuntimeError: requests wait and nothing can run.
    """
    in_lockstep = profile.max_running is None and not config.scheduler.long_prefill_token_threshold
    engine = Lockstep(config, profile) if in_lockstep else Stepwise(config, profile)
    coming = enumerate(arrivals)
    following = next(coming, None)
    live: dict[int, Arrival] = {}
    now = 0
    while following is not None or engine.has_work:
        if following is not None and not engine.has_work:
            now = max(now, following[1].arrival_ns)
        while following is not None and following[1].arrival_ns <= now:
            uid, arrival = following
            live[uid] = arrival
            engine.add(_request(uid, arrival))
            following = next(coming, None)
        now, ended = engine.step(now)
        for request, stamps in ended:
            yield request.uid, Served(live.pop(request.uid), tuple(stamps), request.num_preemptions)


class Stepwise:
    """The engine core, every request looked at in every step: what any engine can do."""

    def __init__(self, config: EngineConfig, profile: Profile) -> None:
        self._core = EngineCore(config, profile)
        self._stamps: dict[SimRequest, list[int]] = {}

    @property
    def has_work(self) -> bool:
        """Whether any request is unfinished."""
        return self._core.has_work

    def add(self, request: SimRequest) -> None:
        """Queues a request."""
        self._core.add(request)
        self._stamps[request] = []

    def step(self, now_ns: int) -> tuple[int, list[Ended]]:
        """Runs the step that begins now: when it ends, and who ends with it."""
        end_ns = self._core.begin_step(now_ns)
        if end_ns is None:
            raise RuntimeError("the scheduler is stuck: requests wait and nothing can run")
        ended: list[Ended] = []
        for request in self._core.end_step().yielding:
            self._stamps[request].append(end_ns)
            if request.finish_reason is not None:
                ended.append((request, self._stamps.pop(request)))
        return end_ns, ended


class Lockstep:
    """The same steps, several times as fast; without thresholds of long prefills and limits of a profile's own."""

    def __init__(self, config: EngineConfig, profile: Profile) -> None:
        self._scheduler = LockstepScheduler(config.scheduler, config.cache)
        self._duration_ns = profile.timer(config.scheduler)

    @property
    def has_work(self) -> bool:
        """Whether any request is unfinished."""
        return self._scheduler.has_work

    def add(self, request: SimRequest) -> None:
        """Queues a request."""
        self._scheduler.add(request)

    def step(self, now_ns: int) -> tuple[int, list[Ended]]:
        """Runs the step that begins now: when it ends, and who ends with it."""
        plan = self._scheduler.schedule()
        if not plan.num_tokens:
            raise RuntimeError("the scheduler is stuck: requests wait and nothing can run")
        end_ns = now_ns + self._duration_ns(plan)
        return end_ns, self._scheduler.complete(plan, end_ns)


def _request(uid: int, arrival: Arrival) -> SimRequest:
    return SimRequest(
        uid=uid,
        num_prompt_tokens=arrival.prompt_tokens,
        target_output_tokens=arrival.output_tokens,
        arrival_ns=arrival.arrival_ns,
    )
