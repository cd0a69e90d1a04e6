"""What a server counts of its requests, as vLLM V1 counts it. Plain numbers; `metrics` puts them into Prometheus form.

As in vLLM a prompt is counted when its first token comes. Source: vLLM 0.32.0, v1/metrics/{stats,loggers}.py.
"""

from goodput.engines.api.engine import FINISH_REASONS, Request
from goodput.engines.api.histogram import (
    N_BUCKETS,
    REQUEST_BUCKETS,
    TOKEN_BUCKETS,
    TTFT_BUCKETS,
    Histogram,
    one_two_five,
)

_NS = 1e-9


class RequestStats:
    """All that a scrape shows of requests, whatever engine serves them. Times in seconds."""

    def __init__(self, max_model_len: int) -> None:
        self.running = 0
        self.waiting = 0
        self.prompt_tokens = 0
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
        self.n_param = Histogram(N_BUCKETS)
        lengths = one_two_five(max_model_len)
        self.request_prompt_tokens = Histogram(lengths)
        self.request_generation_tokens = Histogram(lengths)
        self.max_generation_tokens = Histogram(lengths)
        self.max_tokens_param = Histogram(lengths)

    def observe_first_token(self, request: Request, now_ns: int) -> None:
        """Counts a prompt and the time until it was answered; not the token itself."""
        self.ttft.observe((now_ns - request.arrival_ns) * _NS)
        self.prompt_tokens += request.num_prompt_tokens

    def observe_gap(self, gap_ns: int, times: int = 1) -> None:
        """Counts the time between two tokens of a request; `times` requests had the same."""
        self.itl.observe(gap_ns * _NS, times)

    def observe_end(self, request: Request) -> None:
        """Counts a request that has its last token."""
        first, last, tokens = request.first_token_ns, request.last_token_ns, request.num_output_tokens
        self.finished[request.finish_reason or "error"] += 1
        self.e2e.observe((last - request.arrival_ns) * _NS)
        self.queue_time.observe((request.scheduled_ns - request.arrival_ns) * _NS)
        self.prefill_time.observe((first - request.scheduled_ns) * _NS)
        self.decode_time.observe((last - first) * _NS)
        self.inference_time.observe((last - request.scheduled_ns) * _NS)
        self.tpot.observe((last - first) * _NS / (tokens - 1) if tokens > 1 else 0.0)
        self.n_param.observe(1)
        self.request_prompt_tokens.observe(request.num_prompt_tokens)
        self.request_generation_tokens.observe(tokens)
        self.max_generation_tokens.observe(tokens)
        self.max_tokens_param.observe(request.max_tokens)

    def observe_abort(self) -> None:
        """Counts a request that ended without its last token."""
        self.finished["abort"] += 1
