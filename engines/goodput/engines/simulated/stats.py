"""What the engine counts, as vLLM V1 counts it: besides requests its steps, its cache, its preemptions.

As in vLLM everything moves with engine outputs: gauges hold the state after the last step, and a preemption
is counted when the preempted request gets its next token (one that is aborted before that is never counted).
Sources: vLLM 0.32.0, v1/metrics/{stats,loggers}.py.
"""

from goodput.engines.api.histogram import Histogram, one_two_five
from goodput.engines.api.stats import RequestStats
from goodput.engines.simulated.core import StepResult
from goodput.engines.simulated.request import SimRequest
from goodput.engines.simulated.scheduler import Scheduler

ITERATION_BUCKETS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
PREEMPTION_BUCKETS = (1, 2, 3, 4, 5, 10, 20)


class EngineStats(RequestStats):
    """All that a scrape of the engine can show."""

    def __init__(self, max_model_len: int) -> None:
        super().__init__(max_model_len)
        self.kv_usage = 0.0
        self.prefix_queries = 0
        self.prefix_hits = 0
        self.preemptions = 0
        self.cached_prompt_tokens = 0
        self.iteration_tokens = Histogram(ITERATION_BUCKETS)
        self.request_preemptions = Histogram(PREEMPTION_BUCKETS)
        self.prefill_kv_computed = Histogram(one_two_five(max_model_len))

    def observe_step(self, result: StepResult, scheduler: Scheduler) -> None:
        """Counts a step; `scheduler` is in the state after it."""
        computed = 0
        gaps: dict[int, int] = {}
        for request, previous in zip(result.yielding, result.previous_token_ns, strict=True):
            if previous < 0:
                computed += self._first_token(request, result.end_ns)
            else:
                gap = result.end_ns - previous
                gaps[gap] = gaps.get(gap, 0) + 1
            self.preemptions += request.unreported_preemptions
            request.unreported_preemptions = 0
            if request.finish_reason is not None:
                self._finished(request)
        for gap, times in gaps.items():
            self.observe_gap(gap, times)
        if result.yielding:
            self.generation_tokens += len(result.yielding)
            self.iteration_tokens.observe(computed + len(result.yielding))
        self.finished["abort"] += len(result.aborted)
        self.observe_state(scheduler)

    def observe_state(self, scheduler: Scheduler) -> None:
        """Takes the gauges and the prefix-cache counts from the scheduler."""
        self.running = len(scheduler.running)
        self.waiting = len(scheduler.waiting)
        self.kv_usage = scheduler.pool.usage
        self.prefix_queries = scheduler.prefix_queries
        self.prefix_hits = scheduler.prefix_hits

    def _first_token(self, request: SimRequest, end_ns: int) -> int:
        self.observe_first_token(request, end_ns)
        cached = max(0, request.num_cached_tokens)
        self.cached_prompt_tokens += cached
        return request.num_prompt_tokens - cached

    def _finished(self, request: SimRequest) -> None:
        self.observe_end(request)
        self.request_preemptions.observe(request.num_preemptions)
        self.prefill_kv_computed.observe(request.num_prompt_tokens - max(0, request.num_cached_tokens))
