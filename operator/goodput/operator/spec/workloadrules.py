"""The part of the message table that is about spec.workload."""

from __future__ import annotations

from goodput.operator.spec.rule import Rule, positive

MOST_UNIFORM_VARIATION = 0.577
"""1/√3, rounded down: with more, a uniform distribution would reach below 0."""
UNIQUE = ("promptTokens", "outputTokens", "requestRate", "concurrency", "speed")

_AT = "spec.workload"
_BURST = "has(self.arrival) && self.arrival == 'burst'"
_REPLAY = "has(self.arrival) && self.arrival == 'replay'"


def _unique(name: str) -> Rule:
    return Rule(
        id=f"unique:{name}",
        at=_AT,
        field=f"{_AT}.{name}",
        cel=f"!has(self.{name}) || self.{name}.all(x, self.{name}.exists_one(y, y == x))",
        message="a value is listed twice",
        fix="list every value once",
    )


_ARRIVALS = (
    Rule(
        "arrivals",
        _AT,
        _AT,
        "[has(self.requestRate), has(self.concurrency), has(self.speed), has(self.stages), has(self.search)]"
        f".filter(x, x).size() == ({_BURST} ? 0 : 1)",
        "exactly one of requestRate, concurrency, speed, stages and search is needed, and none with arrival burst",
        "write requestRate: [2, 4] for two load points",
    ),
    Rule(
        "arrival-open",
        _AT,
        f"{_AT}.arrival",
        "!has(self.arrival) || !has(self.concurrency)",
        "is for planned arrivals: with concurrency the next request starts when one ends",
        "remove it",
    ),
    Rule(
        "burstiness",
        _AT,
        f"{_AT}.burstiness",
        "has(self.burstiness) == (has(self.arrival) && self.arrival == 'gamma')",
        "belongs to arrival gamma, and is required there",
        "write burstiness: 0.5, or change the arrival",
    ),
    Rule(
        "speed",
        _AT,
        f"{_AT}.speed",
        f"has(self.speed) == ({_REPLAY})",
        "belongs to arrival replay, and is required there",
        "write speed: [1, 10], or change the arrival",
    ),
    Rule(
        "replay",
        _AT,
        f"{_AT}.arrival",
        f"!({_REPLAY}) || self.dataset == 'trace'",
        "replay takes its times from a trace",
        "write dataset: trace with its datasetUri",
    ),
    Rule(
        "burst-window",
        _AT,
        f"{_AT}.window",
        f"!({_BURST}) || (has(self.window) && has(self.window.requests))",
        "a burst needs its number of requests, and has no duration",
        "write window: {requests: 500}",
    ),
    Rule(
        "burst-lead-in",
        _AT,
        f"{_AT}.leadIn",
        f"!({_BURST}) || !has(self.leadIn)",
        "a burst has no lead-in",
        "remove it",
    ),
    Rule(
        "stages-window",
        _AT,
        f"{_AT}.window",
        "!(has(self.stages) && has(self.window))",
        "the stages are the window",
        "remove the window, or the stages",
    ),
    Rule(
        "window",
        f"{_AT}.window",
        f"{_AT}.window",
        "has(self.duration) != has(self.requests)",
        "exactly one of duration and requests is needed",
        "write {duration: 60s} or {requests: 500}",
    ),
)

_CONTENT = (
    Rule(
        "dataset-uri",
        _AT,
        f"{_AT}.datasetUri",
        "has(self.datasetUri) == (self.dataset != 'random')",
        "belongs to datasets other than random, and is required there",
        "say where the dataset is, or remove it",
    ),
    Rule(
        "dataset-lengths",
        _AT,
        f"{_AT}.dataset",
        "self.dataset == 'random' || !(has(self.promptTokens) || has(self.outputTokens) || has(self.sharedPrefix) || "
        "self.lengths.distribution != 'exact')",
        "promptTokens, outputTokens, lengths and sharedPrefix are for random: this dataset gives the lengths",
        "remove them, or use dataset random",
    ),
    Rule(
        "lengths-variation",
        f"{_AT}.lengths",
        f"{_AT}.lengths.variation",
        "has(self.variation) == (self.distribution != 'exact')",
        "belongs to uniform, normal and lognormal, and is required there",
        "write {distribution: lognormal, variation: 0.5}, or remove it",
    ),
    Rule(
        "lengths-uniform",
        f"{_AT}.lengths",
        f"{_AT}.lengths.variation",
        f"self.distribution != 'uniform' || !has(self.variation) || self.variation <= {MOST_UNIFORM_VARIATION}",
        f"must be at most {MOST_UNIFORM_VARIATION} for uniform, whose lengths would else reach below 0",
        "lower it, or use lognormal",
    ),
    Rule(
        "max-tokens",
        _AT,
        f"{_AT}.maxTokens",
        "has(self.maxTokens) == (self.dataset != 'random' || self.lengths.distribution in ['normal', 'lognormal'])",
        "belongs to lengths without an end (datasets, normal, lognormal), and is required there",
        "write what every config's max_model_len allows, such as maxTokens: 8192, or remove it",
    ),
    Rule(
        "prefix-length",
        _AT,
        f"{_AT}.sharedPrefix.tokens",
        "!has(self.sharedPrefix) || (has(self.promptTokens) ? "
        "self.promptTokens.all(p, p > self.sharedPrefix.tokens) : self.sharedPrefix.tokens < 512)",
        "must be less than every one of promptTokens, which include it",
        "shorten the prefix or lengthen the prompts",
    ),
    Rule(
        "prefix-endpoint",
        _AT,
        f"{_AT}.sharedPrefix",
        "!has(self.sharedPrefix) || self.endpoint == 'completions'",
        "is for endpoint completions: a chat template comes before the prefix",
        "use completions, or a jsonl dataset with messages",
    ),
    Rule(
        "token-ids",
        f"{_AT}.tokenIdRange",
        f"{_AT}.tokenIdRange",
        "self.first < self.last",
        "first must be smaller than last",
        "write {first: 1000, last: 30000}",
    ),
    Rule(
        "token-ids-dataset",
        _AT,
        f"{_AT}.tokenIdRange",
        "!has(self.tokenIdRange) || self.dataset in ['random', 'trace']",
        "is for datasets random and trace, whose prompts are random ids",
        "remove it",
    ),
)

WORKLOAD_RULES = (
    *_ARRIVALS,
    *_CONTENT,
    *map(_unique, UNIQUE),
    positive(f"{_AT}.window", "duration", "60s"),
    positive(f"{_AT}.stages[]", "duration", "60s"),
)
