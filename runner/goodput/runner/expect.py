"""What a load is expected to ask for where the plan cannot know it: for room, estimates and warm-up, never results."""

from __future__ import annotations

from goodput.analysis.schema.planned import Load

DATASET_PROMPT_TOKENS = 2048  # the means of ShareGPT and the public Azure traces lie below
DATASET_OUTPUT_TOKENS = 512
TRACE_REQUESTS_PER_SECOND = 10.0  # at its own speed; the public Azure traces have 2.5 and 5.5
STREAM_TOKENS_PER_SECOND = 200  # closed loop: nobody decodes faster
CLOSED_LOOP_ROUNDS = 4  # by count: requests of each stream besides those that are counted, before and after
BURST_STREAMS = 64  # requests of a burst that a server keeps going at once


def prompt_tokens(load: Load) -> int:
    """Expected mean prompt length."""
    return load.prompt_tokens or min(DATASET_PROMPT_TOKENS, load.max_tokens or DATASET_PROMPT_TOKENS)


def output_tokens(load: Load) -> int:
    """Expected mean output length."""
    return load.output_tokens or min(DATASET_OUTPUT_TOKENS, load.max_tokens or DATASET_OUTPUT_TOKENS)


def long_output_tokens(load: Load) -> int:
    """Output length of a long request: two standard deviations above the mean, where lengths vary."""
    longest = round(output_tokens(load) * (1 + 2 * (load.length_variation or 0.0)))
    return min(longest, load.max_tokens or longest)


def requests_per_second(load: Load) -> float | None:
    """Highest planned or expected rate; None in a closed loop and for a burst."""
    if load.speed is not None:
        return load.speed * TRACE_REQUESTS_PER_SECOND
    return load.highest_rate


def window_seconds(load: Load, request_seconds: float) -> float:
    """Expected length of the window; ``request_seconds``: how long one request may take."""
    if load.window_seconds is not None:
        return load.window_seconds
    requests, rate = load.window_requests or 0, requests_per_second(load)
    return requests / rate if rate else requests * request_seconds / (load.concurrency or BURST_STREAMS)


def most_requests(load: Load, seconds: float) -> float:
    """Requests that a cell may have, lead-in and tail included, ``seconds`` in all."""
    rate, counted = requests_per_second(load), load.window_requests or 0
    if load.arrival == "burst":
        return counted
    if rate is not None:
        return rate * seconds
    streams = load.concurrency or 1
    fastest = streams * seconds * STREAM_TOKENS_PER_SECOND / output_tokens(load)
    return min(fastest, counted + CLOSED_LOOP_ROUNDS * streams) if counted else fastest
