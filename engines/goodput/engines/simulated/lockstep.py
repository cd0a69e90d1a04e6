"""The scheduler without a look at every decode in every step, for engines whose tokens nobody reads.

Requests that decode change alike in every step: one more token computed, one more generated, and every
`block_size` steps one block. So they are a group that advances by a counter; a member is looked at when it joins,
needs a block, ends, or when blocks run out and the step must be planned the long way. Plans have the sums of the
whole step but list only requests that are not in the group.

The steps are those of `Scheduler`, to the nanosecond: the group is what comes first in `running`, since without
`long_prefill_token_threshold` only the request admitted last can be in the middle of its prompt.
"""

from collections import defaultdict

from goodput.engines.simulated.config import CacheConfig, SchedulerConfig
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.scheduler import Scheduler, StepPlan

#: Ends of steps that are kept before all members take theirs.
_MOST_ENDS = 4096


class LockstepScheduler(Scheduler):
    """Schedules requests without token ids. The stamps of their tokens are kept here until they end.

    Raises:
        ValueError: the config has a threshold, or a request has token ids.
    """

    def __init__(self, config: SchedulerConfig, cache: CacheConfig) -> None:
        if config.long_prefill_token_threshold:
            raise ValueError("with long_prefill_token_threshold decodes do not come first")
        super().__init__(config, cache)
        self._tick = 0  # steps of the group
        self._ends: list[int] = []  # of the last of them
        self._members: dict[SimRequest, int] = {}  # to the tick up to which its counters are; in the order of `running`
        self._context = 0  # tokens that they read from the cache in the next step
        self._block_due: defaultdict[int, list[SimRequest]] = defaultdict(list)
        self._end_due: defaultdict[int, list[SimRequest]] = defaultdict(list)
        self._stamps: dict[SimRequest, list[int]] = {}

    def add(self, request: SimRequest) -> None:
        """See `Scheduler`."""
        if request.prompt_token_ids is not None:
            raise ValueError("tokens of a request with ids must be generated one by one")
        super().add(request)
        self._stamps[request] = []

    def schedule(self) -> StepPlan:
        """See `Scheduler`; the group is in the sums alone."""
        plan = super().schedule()
        plan.num_sampled += len(self._members)
        return plan

    def complete(self, plan: StepPlan, end_ns: int) -> list[tuple[SimRequest, list[int]]]:
        """Applies a computed step. Returns the requests that end with it, and the stamps of all their tokens."""
        ended = self._step_group(end_ns)
        for request in self.advance(plan):
            self._stamps[request].append(end_ns)
            if request.num_output_tokens < request.target_output_tokens:
                self._join(request)
            else:
                ended.append(request)
        for request in ended:
            self.finish(request, "length")
        return [(request, self._stamps.pop(request)) for request in ended]

    def _schedule_running(self, plan: StepPlan, budget: int, threshold: int) -> int:
        due = [request for request in self._block_due.pop(self._tick, ()) if request in self._members]
        if len(due) > self.pool.num_free:
            self._dissolve()
            return self._schedule_from(0, plan, budget, threshold)
        for request, block in zip(due, self.pool.take(len(due)), strict=True):
            request.block_ids.append(block)
            request.num_slots += self._block_size
        self._block_due[self._tick + self._block_size] += due
        plan.num_decodes = size = len(self._members)
        plan.decode_context_tokens = self._context
        return self._schedule_from(size, plan, budget - size, threshold)

    def _step_group(self, end_ns: int) -> list[SimRequest]:
        """One more token for every member; those that end with it are none any more."""
        if not self._members:
            return []
        self._tick += 1
        self._ends.append(end_ns)
        self._context += len(self._members)
        ended = self._end_due.pop(self._tick, [])
        for request in ended:
            self._catch_up(request)
            del self._members[request]
            self._context -= request.num_computed_tokens + 1
        if len(self._ends) >= _MOST_ENDS:
            for request in self._members:
                self._catch_up(request)
            self._ends.clear()
        return ended

    def _join(self, request: SimRequest) -> None:
        """Its next step computes one token; the group's ticks at which it needs a block and ends are known."""
        self._members[request] = self._tick
        self._context += request.num_computed_tokens + 1
        self._block_due[self._tick + request.num_slots - request.num_computed_tokens].append(request)
        self._end_due[self._tick + request.target_output_tokens - request.num_output_tokens].append(request)

    def _dissolve(self) -> None:
        for request in self._members:
            self._catch_up(request)
        self._members.clear()
        self._ends.clear()
        self._block_due.clear()
        self._end_due.clear()
        self._context = 0

    def _catch_up(self, request: SimRequest) -> None:
        behind = self._tick - self._members[request]
        self._members[request] = self._tick
        request.num_computed_tokens += behind
        request.num_output_tokens += behind
        request.num_tokens += behind
        self._stamps[request] += self._ends[len(self._ends) - behind :]
