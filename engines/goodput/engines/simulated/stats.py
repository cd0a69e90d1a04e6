"""What the engine counts, as vLLM V1 counts it. Plain numbers; `metrics` puts them into Prometheus form.

As in vLLM everything moves with engine outputs: gauges hold the state after the last step, a prompt is
counted when its first token comes, and a preemption when the preempted request gets its next token (one
that is aborted before that is never counted). Sources: vLLM 0.32.0, v1/metrics/{stats,loggers}.py.
"""

from bisect import bisect_left
from collections.abc import Sequence

from goodput.engines.simulated.core import StepResult
from goodput.engines.simulated.request import FINISH_REASONS, SimRequest
from goodput.engines.simulated.scheduler import Scheduler

_NS = 1e-9

TTFT_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0),
    *(40.0, 80.0, 160.0, 640.0, 2560.0),
)
TOKEN_BUCKETS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0),
    80.0,
)
REQUEST_BUCKETS = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0),
    *(480.0, 960.0, 1920.0, 7680.0),
)
ITERATION_BUCKETS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
PREEMPTION_BUCKETS = (1, 2, 3, 4, 5, 10, 20)
N_BUCKETS = (1, 2, 5, 10, 20)


def one_two_five(largest: int) -> tuple[int, ...]:
    """1, 2, 5, 10, 20, 50, … up to `largest`."""
    values: list[int] = []
    decade = 1
    while True:
        for mantissa in (1, 2, 5):
            if mantissa * decade > largest:
                return tuple(values)
            values.append(mantissa * decade)
        decade *= 10


class Histogram:
    """Counts per bucket; an upper edge belongs to its bucket."""

    __slots__ = ("counts", "edges", "total")

    def __init__(self, edges: Sequence[float]) -> None:
        self.edges = tuple(float(edge) for edge in edges)
        self.counts = [0] * (len(edges) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Adds the value, `times` times."""
        self.counts[bisect_left(self.edges, value)] += times
        self.total += value * times

    def cumulative(self) -> list[tuple[str, float]]:
        """(edge, observations at or below it), the last edge being `+Inf`."""
        rows, below = [], 0
        for edge, count in zip((*map(str, self.edges), "+Inf"), self.counts, strict=True):
            below += count
            rows.append((edge, float(below)))
        return rows


class EngineStats:
    """All that a scrape of the engine can show."""

    def __init__(self, max_model_len: int) -> None:
        self.running = 0
        self.waiting = 0
        self.kv_usage = 0.0
        self.prefix_queries = 0
        self.prefix_hits = 0
        self.preemptions = 0
        self.prompt_tokens = 0
        self.cached_prompt_tokens = 0
        self.generation_tokens = 0
        self.finished = dict.fromkeys(FINISH_REASONS, 0)
        self.ttft = Histogram(TTFT_BUCKETS)
        self.itl = Histogram(TOKEN_BUCKETS)
        self.tpot = Histogram(TOKEN_BUCKETS)
        self.e2e = Histogram(REQUEST_BUCKETS)
        self.queue_time = Histogram(REQUEST_BUCKETS)
        self.prefill_time = Histogram(REQUEST_BUCKETS)
        self.decode_time = Histogram(REQUEST_BUCKETS)
        self.inference_time = Histogram(REQUEST_BUCKETS)
        self.iteration_tokens = Histogram(ITERATION_BUCKETS)
        self.request_preemptions = Histogram(PREEMPTION_BUCKETS)
        self.n_param = Histogram(N_BUCKETS)
        lengths = one_two_five(max_model_len)
        self.request_prompt_tokens = Histogram(lengths)
        self.request_generation_tokens = Histogram(lengths)
        self.max_generation_tokens = Histogram(lengths)
        self.max_tokens_param = Histogram(lengths)
        self.prefill_kv_computed = Histogram(lengths)

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
            self.itl.observe(gap * _NS, times)
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

    def observe_abort(self) -> None:
        """Counts a request that ended without its last token."""
        self.finished["abort"] += 1

    def _first_token(self, request: SimRequest, end_ns: int) -> int:
        self.ttft.observe((end_ns - request.arrival_ns) * _NS)
        self.prompt_tokens += request.num_prompt_tokens
        cached = max(0, request.num_cached_tokens)
        self.cached_prompt_tokens += cached
        return request.num_prompt_tokens - cached

    def _finished(self, request: SimRequest) -> None:
        first, last, tokens = request.first_token_ns, request.last_token_ns, request.num_output_tokens
        self.finished[request.finish_reason or "error"] += 1
        self.e2e.observe((last - request.arrival_ns) * _NS)
        self.queue_time.observe((request.scheduled_ns - request.arrival_ns) * _NS)
        self.prefill_time.observe((first - request.scheduled_ns) * _NS)
        self.decode_time.observe((last - first) * _NS)
        self.inference_time.observe((last - request.scheduled_ns) * _NS)
        self.tpot.observe((last - first) * _NS / (tokens - 1) if tokens > 1 else 0.0)
        self.request_preemptions.observe(request.num_preemptions)
        self.n_param.observe(1)
        self.request_prompt_tokens.observe(request.num_prompt_tokens)
        self.request_generation_tokens.observe(tokens)
        self.max_generation_tokens.observe(tokens)
        self.max_tokens_param.observe(request.max_tokens)
        self.prefill_kv_computed.observe(request.num_prompt_tokens - max(0, request.num_cached_tokens))
