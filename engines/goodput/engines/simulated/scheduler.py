"""vLLM V1's scheduler as a pure model (first come, first served).

One step is `schedule` (who computes how many tokens) and `advance` (what the computed tokens mean).
There is no prefill or decode phase: every request has tokens it must still compute, the running ones are
served first, in order of admission, then the waiting ones, until the token budget is used up. A request
yields a token in each step that leaves it with nothing left to compute.

Source: vLLM 0.32.0, v1/core/sched/scheduler.py and v1/core/kv_cache_manager.py.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import islice

from goodput.engines.simulated.blocks import BlockPool
from goodput.engines.simulated.config import CacheConfig, SchedulerConfig
from goodput.engines.simulated.request import NEVER, SimRequest


@dataclass(slots=True)
class StepPlan:
    """What one step computes. The sums are what a step-time profile needs.

    Attributes:
        scheduled: (request, tokens) in the order of scheduling.
        yielding: requests that yield one token at the end of the step, in the order of scheduling.
        admitted: requests that came from the waiting queue.
        num_tokens: sum of the tokens.
        num_decodes: requests that compute the one token after their last generated one.
        decode_context_tokens: sum over them of the tokens read from the cache.
        prefill_attention: sum over the other chunks of chunk * (tokens before + chunk / 2).
        num_sampled: number of `yielding`.
        preempted: requests that lost their blocks while this step was planned.
    """

    scheduled: list[tuple[SimRequest, int]] = field(default_factory=list)
    yielding: list[SimRequest] = field(default_factory=list)
    admitted: list[SimRequest] = field(default_factory=list)
    num_tokens: int = 0
    num_decodes: int = 0
    decode_context_tokens: int = 0
    prefill_attention: float = 0.0
    num_sampled: int = 0
    preempted: list[SimRequest] = field(default_factory=list)


class Scheduler:
    """Holds the queues and the blocks. `max_running` limits concurrency beyond the config (a profile may)."""

    def __init__(self, config: SchedulerConfig, cache: CacheConfig, *, max_running: int | None = None) -> None:
        self._config = config
        self._block_size = cache.block_size
        self._caching = cache.enable_prefix_caching
        self._watermark_blocks = int(config.watermark * cache.num_gpu_blocks)
        self._max_running = config.max_active if max_running is None else min(config.max_active, max_running)
        self.pool = BlockPool(cache.num_usable_blocks, caching=cache.enable_prefix_caching)
        self.running: list[SimRequest] = []
        self.waiting: deque[SimRequest] = deque()
        self.prefix_queries = 0
        self.prefix_hits = 0

    @property
    def has_work(self) -> bool:
        """Whether any request is unfinished."""
        return bool(self.running or self.waiting)

    def add(self, request: SimRequest) -> None:
        """Queues a new request."""
        self.waiting.append(request)

    def abort(self, request: SimRequest) -> None:
        """Takes an unfinished request out and frees its blocks; not between `schedule` and `advance`."""
        if request in self.running:
            self.running.remove(request)
            self._free(request)
        else:
            self.waiting.remove(request)
        request.finish_reason = "abort"

    def reset_prefix_cache(self) -> bool:
        """Forgets all cached content; False, and nothing changed, while blocks are held."""
        return self.pool.reset()

    def schedule(self) -> StepPlan:
        """Plans the next step and allocates its blocks. An empty plan means that nothing can run."""
        plan = StepPlan()
        threshold = self._long_prefill_threshold()
        budget = self._schedule_running(plan, self._config.max_num_batched_tokens, threshold)
        if not plan.preempted:
            budget = self._schedule_waiting(plan, budget, threshold)
        plan.num_tokens = self._config.max_num_batched_tokens - budget
        plan.num_sampled = len(plan.yielding)
        return plan

    def advance(self, plan: StepPlan) -> list[SimRequest]:
        """Applies a computed step. Returns the requests that yield one token now, in scheduling order.

        The caller decides whether a request ends with this token and then calls `finish`.
        """
        for request in plan.yielding:
            request.num_output_tokens += 1
            request.num_tokens += 1
        return plan.yielding

    def finish(self, request: SimRequest, reason: str) -> None:
        """Ends a running request and frees its blocks."""
        self.running.remove(request)
        self._free(request)
        request.finish_reason = reason

    def _long_prefill_threshold(self) -> int:
        eligible = len(self.running) + len(self.waiting)
        threshold = self._config.long_prefill_token_threshold
        if threshold == 0 or eligible <= 1:
            return 0
        if self._config.long_prefill_token_threshold_adaptive:
            threshold = max(threshold, self._config.max_num_batched_tokens // eligible)
        return threshold

    def _schedule_running(self, plan: StepPlan, budget: int, threshold: int) -> int:
        """The budget that is left."""
        return self._schedule_from(0, plan, budget, threshold)

    def _schedule_from(self, first: int, plan: StepPlan, budget: int, threshold: int) -> int:
        """Running requests from `first` on. Most are decodes: their path is short and inline."""
        scheduled, yielding = plan.scheduled, plan.yielding
        decodes = context = 0
        for request in islice(
            self.running, first, None
        ):  # from which only requests behind this one, or it, are taken meanwhile
            if budget <= 0:
                break
            computed = request.num_computed_tokens
            count = request.num_tokens - computed
            if count > 1:
                if 0 < threshold < count:
                    count = threshold
                count = min(count, budget)
            end = computed + count
            if end > request.num_slots and not self._make_room(plan, request, end):
                break
            budget -= count
            if count > 1 or computed < request.num_prompt_tokens:
                self._put(plan, request, count)
                continue
            decodes += 1
            context += end
            request.num_computed_tokens = end
            request.steps_done += 1
            scheduled.append((request, 1))
            yielding.append(request)
            if end >= request.publish_at:
                self._publish(request)
        plan.num_decodes += decodes
        plan.decode_context_tokens += context
        return budget

    def _make_room(self, plan: StepPlan, request: SimRequest, end: int) -> bool:
        """Allocates blocks up to token `end`, preempting from the tail; False if it was itself the tail."""
        needed = -(-end // self._block_size) - len(request.block_ids)
        while needed > self.pool.num_free:
            victim = self.running.pop()
            self._publish_private(victim)
            self._free(victim)
            victim.num_computed_tokens = 0
            victim.num_preemptions += 1
            victim.unreported_preemptions += 1
            self.waiting.appendleft(victim)
            plan.preempted.append(victim)
            if victim is request:
                return False
        request.block_ids += self.pool.take(needed)
        request.num_slots += needed * self._block_size
        return True

    def _schedule_waiting(self, plan: StepPlan, budget: int, threshold: int) -> int:
        while self.waiting and budget > 0 and len(self.running) < self._max_running:
            request = self.waiting[0]
            cached = self._find_cached(request)
            computed = len(cached) * self._block_size
            count = request.num_tokens - computed
            if 0 < threshold < count:
                count = threshold
            if count > budget and not self._config.enable_chunked_prefill:
                break
            count = min(count, budget)
            if not self._admit(request, cached, count):
                break
            self.waiting.popleft()
            self.running.append(request)
            plan.admitted.append(request)
            self._put(plan, request, count)
            budget -= count
        return budget

    def _find_cached(self, request: SimRequest) -> list[int]:
        """Leading full blocks found in the cache; the last token is always computed, to have its logits."""
        if not self._caching or (request.prompt_token_ids is None and request.num_preemptions == 0):
            return []
        found = []
        find, size = self.pool.find, self._block_size
        for index in range((request.num_tokens - 1) // size):
            block = find(request.key_of_block(index, size))
            if block is None:
                break
            found.append(block)
        return found

    def _admit(self, request: SimRequest, cached: list[int], count: int) -> bool:
        """Allocates for a waiting request, never by preemption; False if it does not fit now."""
        computed = len(cached) * self._block_size
        tokens = request.num_tokens if self._config.scheduler_reserve_full_isl else computed + count
        revived = sum(map(self.pool.is_free, cached))
        required = -(-tokens // self._block_size) - len(cached) + revived
        if self.running:
            required += self._watermark_blocks
        if required > self.pool.num_free:
            return False
        self.pool.share(cached)
        new = -(-(computed + count) // self._block_size) - len(cached)
        request.block_ids = cached + self.pool.take(new)
        request.num_slots = len(request.block_ids) * self._block_size
        request.num_cached_blocks = len(cached)
        if self._caching and request.prompt_token_ids is not None:
            request.publish_at = (len(cached) + 1) * self._block_size
        request.num_computed_tokens = computed
        if self._caching and request.num_preemptions == 0:
            self.prefix_queries += request.num_tokens
            self.prefix_hits += computed
        if request.num_cached_tokens < 0:
            request.num_cached_tokens = computed
        return True

    def _put(self, plan: StepPlan, request: SimRequest, count: int) -> None:
        before = request.num_computed_tokens
        end = before + count
        plan.scheduled.append((request, count))
        if end == request.num_tokens:
            plan.yielding.append(request)
        if count == 1 and before >= request.num_prompt_tokens:
            plan.num_decodes += 1
            plan.decode_context_tokens += end
        else:
            plan.prefill_attention += count * (before + count / 2)
        request.num_computed_tokens = end
        request.steps_done += 1
        if end >= request.publish_at:
            self._publish(request)

    def _publish(self, request: SimRequest) -> None:
        """Makes the blocks that become full in this step findable, at once, as vLLM does."""
        full = request.num_computed_tokens // self._block_size
        for index in range(request.num_cached_blocks, full):
            self.pool.publish(request.block_ids[index], request.key_of_block(index, self._block_size))
        request.num_cached_blocks = full
        request.publish_at = (full + 1) * self._block_size

    def _publish_private(self, request: SimRequest) -> None:
        """Makes a request without token ids findable, by itself alone, when it is preempted."""
        if self._caching and request.prompt_token_ids is None:
            self._publish(request)

    def _free(self, request: SimRequest) -> None:
        private = 0
        if self._caching and request.prompt_token_ids is None:
            private = request.num_computed_tokens // self._block_size
        self.pool.give_back(request.block_ids, private=private)
        request.block_ids = []
        request.num_slots = 0
        request.num_cached_blocks = 0
        request.publish_at = NEVER
