"""The rules of spec.workload as the command line checks them (the API server has them in CEL)."""

from __future__ import annotations

from collections.abc import Iterator

from goodput.operator.spec.errors import MISSING, Problem
from goodput.operator.spec.messages import RULES
from goodput.operator.spec.workload import WorkloadSpec
from goodput.operator.spec.workloadrules import MOST_UNIFORM_VARIATION, UNIQUE


def workload_problems(work: WorkloadSpec) -> Iterator[Problem]:
    """All broken rules of the workload."""
    for rule, value, broken in (*_arrivals(work), *_window(work), *_content(work), *_lengths(work)):
        if broken:
            yield RULES[rule].problem(MISSING if value is None else value)
    yield from _stages(work)
    yield from _twice(work)
    yield from _too_long(work)


Check = tuple[str, object, bool]


def _arrivals(work: WorkloadSpec) -> Iterator[Check]:
    axes = (work.request_rate, work.concurrency, work.speed, work.stages, work.search)
    burst, replay = work.arrival == "burst", work.arrival == "replay"
    yield "arrivals", None, len(axes) - axes.count(None) != (0 if burst else 1)
    yield "arrival-open", work.arrival, bool(work.arrival and work.concurrency)
    yield "burstiness", work.burstiness, (work.burstiness is not None) != (work.arrival == "gamma")
    yield "speed", work.speed, (work.speed is not None) != replay
    yield "replay", work.arrival, replay and work.dataset != "trace"
    yield "burst-lead-in", work.lead_in_seconds, burst and work.lead_in_seconds is not None


def _window(work: WorkloadSpec) -> Iterator[Check]:
    window = work.window
    yield "burst-window", None, work.arrival == "burst" and (window is None or window.requests is None)
    yield "stages-window", None, bool(work.stages and window)
    if window is not None:
        yield "window", None, (window.duration_seconds is None) == (window.requests is None)
        yield "positive:spec.workload.window.duration", "0s", window.duration_seconds == 0


def _content(work: WorkloadSpec) -> Iterator[Check]:
    random = work.dataset == "random"
    for_random = (work.prompt_tokens, work.output_tokens, work.shared_prefix)
    varied = work.lengths.distribution != "exact"
    yield "dataset-uri", work.dataset_uri, (work.dataset_uri is not None) == random
    yield "dataset-lengths", work.dataset, not random and (varied or for_random.count(None) != len(for_random))
    shared, ids = work.shared_prefix, work.token_id_range
    if shared is not None:
        longer = all(prompt > shared.tokens for prompt in work.prompt_lengths)
        yield "prefix-length", shared.tokens, not longer
        yield "prefix-endpoint", None, work.endpoint != "completions"
    if ids is not None:
        yield "token-ids", {"first": ids.first, "last": ids.last}, ids.first >= ids.last
        yield "token-ids-dataset", None, work.dataset not in ("random", "trace")


def _lengths(work: WorkloadSpec) -> Iterator[Check]:
    kind, variation = work.lengths.distribution, work.lengths.variation
    yield "lengths-variation", variation, (variation is not None) != (kind != "exact")
    yield "lengths-uniform", variation, kind == "uniform" and (variation or 0.0) > MOST_UNIFORM_VARIATION
    endless = work.dataset != "random" or kind in ("normal", "lognormal")
    yield "max-tokens", work.max_tokens, (work.max_tokens is not None) != endless


def _stages(work: WorkloadSpec) -> Iterator[Problem]:
    for number, stage in enumerate(work.stages or ()):
        if stage.duration_seconds == 0:
            field = f"spec.workload.stages[{number}].duration"
            yield RULES["positive:spec.workload.stages[].duration"].problem("0s", field=field)


def _twice(work: WorkloadSpec) -> Iterator[Problem]:
    axes = (work.prompt_tokens, work.output_tokens, work.request_rate, work.concurrency, work.speed)
    for name, values in zip(UNIQUE, axes, strict=True):
        listed = values or ()
        twice = next((value for number, value in enumerate(listed) if value in listed[:number]), None)
        if twice is not None:
            yield RULES[f"unique:{name}"].problem(twice)


def _too_long(work: WorkloadSpec) -> Iterator[Problem]:
    """Means that do not fit: every request would be drawn again and again."""
    if work.max_tokens is not None and work.dataset == "random":
        longest = max(work.prompt_lengths) + max(work.output_lengths)
        if longest > work.max_tokens:
            message = f"is less than the longest means of prompt and output together ({longest})"
            yield Problem("spec.workload.maxTokens", work.max_tokens, message, "raise it or shorten the requests")
