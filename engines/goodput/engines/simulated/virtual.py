"""The engine without waiting: a list of arrivals in, every request's times out."""

from collections.abc import Sequence
from dataclasses import dataclass

from goodput.engines.simulated.config import EngineConfig
from goodput.engines.simulated.core import EngineCore
from goodput.engines.simulated.profile import Profile
from goodput.engines.simulated.request import SimRequest


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
    core = EngineCore(config, profile)
    requests = [
        SimRequest(
            uid=index,
            num_prompt_tokens=arrival.prompt_tokens,
            target_output_tokens=arrival.output_tokens,
            arrival_ns=arrival.arrival_ns,
        )
        for index, arrival in enumerate(arrivals)
    ]
    stamps: list[list[int]] = [[] for _ in requests]
    now, submitted = 0, 0
    while submitted < len(requests) or core.has_work:
        if not core.has_work:
            now = max(now, requests[submitted].arrival_ns)
        while submitted < len(requests) and requests[submitted].arrival_ns <= now:
            core.add(requests[submitted])
            submitted += 1
        end = core.begin_step(now)
        if end is None:
            raise RuntimeError("the scheduler is stuck: requests wait and nothing can run")
        for request in core.end_step().yielding:
            stamps[request.uid].append(end)
        now = end
    return [
        Served(arrival, tuple(stamps[index]), requests[index].num_preemptions) for index, arrival in enumerate(arrivals)
    ]
