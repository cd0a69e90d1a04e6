"""What is sent and what is promised: workload, SLO, objective."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from goodput.analysis.schema import base, planned
from goodput.operator.spec.base import Part
from goodput.operator.spec.scalars import DATASET_PATTERN, Rate, Seconds, Speed, Tokens

WINDOW_SECONDS = 60.0
PROMPT_TOKENS = (512,)
OUTPUT_TOKENS = (128,)


class Window(Part):
    """The span whose arrivals are judged: a time or a number of requests."""

    duration_seconds: Seconds | None = Field(default=None, alias="duration", description="Length of the window.")
    requests: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="The window ends at the planned arrival of the request after these.",
    )


class Warmup(Part):
    """Requests before the first measurement of a server."""

    max_seconds: Seconds = Field(
        default=120.0, alias="max", description="Longest time until the server must look steady."
    )


class LengthsSpec(Part):
    """How lengths vary from request to request around promptTokens and outputTokens."""

    distribution: Literal["exact", "uniform", "normal", "lognormal"] = Field(
        default="exact", description="exact: every request has exactly these lengths."
    )
    variation: Annotated[float, Field(gt=0, le=10)] | None = Field(
        default=None, description="Standard deviation / mean, of prompts and outputs; uniform takes at most 0.577."
    )


class SharedPrefix(Part):
    """Prompts in groups that begin alike, to exercise the prefix cache."""

    groups: int = Field(ge=1, le=100_000, description="Groups, equally likely; each has its own prefix.")
    tokens: Tokens = Field(description="Length of the prefix; promptTokens includes it.")


class StageSpec(Part):
    """A part of the window with its own rate."""

    duration_seconds: Seconds = Field(alias="duration", description="Length of the stage.")
    rate: Rate = Field(description="Offered requests per second.")
    end_rate: Rate | None = Field(
        default=None, description="Rate at the stage's end; it rises or falls evenly. Without it the rate stays."
    )

    def to_document(self) -> planned.Stage:
        """The stage as stored beside results."""
        return planned.Stage(duration_seconds=self.duration_seconds, rate=self.rate, end_rate=self.end_rate)


class Search(Part):
    """Looks for the highest rate that the SLO allows."""

    min: Rate = Field(description="Lowest rate tried, per second.")
    max: Rate = Field(description="Highest rate tried, per second.")
    precision: float = Field(default=0.05, gt=0, lt=1, description="Width of the bracket that ends it.")


class TokenIdRange(Part):
    """Token ids that prompts are drawn from, both ends included."""

    first: int = Field(ge=0, le=10_000_000, description="Smallest token id.")
    last: int = Field(ge=0, le=10_000_000, description="Largest token id.")


class WorkloadSpec(Part):
    """The load axis: shapes, arrivals and how long each load point is measured."""

    dataset: base.Dataset = Field(
        default="random",
        description="Where prompts come from. random: token ids of exact length. sharegpt: conversations, of which "
        "the first human turn is sent. jsonl: one request per line. trace: lengths and times of an Azure LLM trace.",
    )
    dataset_uri: Annotated[str, Field(max_length=1024, pattern=DATASET_PATTERN)] | None = Field(
        default=None,
        description="Where the dataset's file is, for sharegpt, jsonl and trace: s3://, gs://, az://, https:// or "
        "file://. The runner reads it with the credentials of the results.",
    )
    prompt_tokens: Annotated[tuple[Tokens, ...], Field(min_length=1, max_length=32)] | None = Field(
        default=None,
        description="Dataset random: prompt lengths in tokens, without it 512. Each makes its own load points.",
    )
    output_tokens: Annotated[tuple[Tokens, ...], Field(min_length=1, max_length=32)] | None = Field(
        default=None,
        description="Dataset random: output lengths in tokens, without it 128. Each makes its own load points.",
    )
    lengths: LengthsSpec = Field(default_factory=LengthsSpec, description="How lengths vary, for dataset random.")
    max_tokens: Annotated[int, Field(ge=2, le=1_048_576)] | None = Field(
        default=None,
        description="Most tokens of prompt and output together. Longer rows of a dataset are left out and counted; "
        "longer random lengths are drawn again.",
    )
    shared_prefix: SharedPrefix | None = Field(
        default=None, description="Dataset random: groups of prompts that begin alike."
    )
    request_rate: Annotated[tuple[Rate, ...], Field(min_length=1, max_length=32)] | None = Field(
        default=None, description="Open loop: offered requests per second."
    )
    concurrency: (
        Annotated[tuple[Annotated[int, Field(ge=1, le=100_000)], ...], Field(min_length=1, max_length=32)] | None
    ) = Field(default=None, description="Closed loop: requests that are kept in flight.")
    speed: Annotated[tuple[Speed, ...], Field(min_length=1, max_length=32)] | None = Field(
        default=None, description="arrival replay: how many times as fast the trace passes; 1 is its own speed."
    )
    stages: Annotated[tuple[StageSpec, ...], Field(min_length=1, max_length=32)] | None = Field(
        default=None,
        description="Open loop: rates that follow each other within one load point. The window is all of them; "
        "the lead-in has the first rate.",
    )
    search: Search | None = Field(default=None, description="Looks for the highest rate by itself.")
    arrival: Literal["poisson", "constant", "gamma", "burst", "replay"] | None = Field(
        default=None,
        description="Open loop: how arrivals are spread; without it poisson. burst: all window.requests at once. "
        "replay: at a trace's own times.",
    )
    burstiness: Annotated[float, Field(gt=0, le=1000)] | None = Field(
        default=None, description="gamma: shape of the gaps; 1 is poisson, less is burstier."
    )
    window: Window | None = Field(
        default=None, description="The span whose arrivals are judged; without it 1m, or all stages."
    )
    lead_in_seconds: Seconds | None = Field(
        default=None,
        alias="leadIn",
        description="Load before the window, not judged. Without it max(10s, 5 x the longest planned request).",
    )
    warmup: Warmup = Field(default_factory=Warmup, description="Requests before a server's first measurement.")
    seed: int = Field(default=0, ge=0, le=2**53, description="Seed of all random draws: arrivals, prompts, order.")
    endpoint: Literal["completions", "chat"] = Field(default="completions", description="API that is measured.")
    token_id_range: TokenIdRange | None = Field(
        default=None, description="Ids for random prompts; without it ids that the server's tokenizer returns."
    )

    @property
    def prompt_lengths(self) -> tuple[int, ...]:
        """Prompt lengths of dataset random; empty where the dataset gives them."""
        return (self.prompt_tokens or PROMPT_TOKENS) if self.dataset == "random" else ()

    @property
    def output_lengths(self) -> tuple[int, ...]:
        """Output lengths of dataset random; empty where the dataset gives them."""
        return (self.output_tokens or OUTPUT_TOKENS) if self.dataset == "random" else ()

    @property
    def amounts(self) -> tuple[float | None, ...]:
        """The load axis ascending: rates, concurrencies or speeds; one None for stages and a burst."""
        axis = self.request_rate or self.concurrency or self.speed
        return tuple(sorted(axis)) if axis else (None,)

    @property
    def window_or_default(self) -> Window:
        """The window, where the stages do not make it."""
        return self.window or Window(duration_seconds=WINDOW_SECONDS)


class SloSpec(Part):
    """What a good request keeps. A limit that is not set does not judge."""

    ttft_seconds: Seconds | None = Field(
        default=None, alias="ttft", description="Most time from sending to the first token."
    )
    tpot_seconds: Seconds | None = Field(
        default=None, alias="tpot", description="Most mean time per output token after the first."
    )
    itl_seconds: Seconds | None = Field(
        default=None, alias="itl", description="Most time between two tokens: the request's largest gap."
    )
    e2e_seconds: Seconds | None = Field(
        default=None, alias="e2e", description="Most time from sending to the last token."
    )
    attainment: float = Field(
        default=0.9, gt=0, le=1, description="Share of requests that must be good for a load to count."
    )

    @property
    def limited(self) -> bool:
        """At least one limit is set."""
        limits = (self.ttft_seconds, self.tpot_seconds, self.itl_seconds, self.e2e_seconds)
        return any(limit is not None for limit in limits)

    def to_document(self) -> planned.Slo:
        """The SLO as stored beside results, in seconds."""
        return planned.Slo(
            ttft=self.ttft_seconds,
            tpot=self.tpot_seconds,
            itl=self.itl_seconds,
            e2e=self.e2e_seconds,
            attainment=self.attainment,
        )


class ObjectiveSpec(Part):
    """What makes a config better than another."""

    name: Literal["goodput", "capacity", "outputThroughput", "makespan"] = Field(
        default="goodput",
        description="goodput: good requests per second. outputThroughput: delivered output tokens per second. "
        "capacity: highest rate that keeps the SLO. makespan: time for a batch.",
    )
    tie_break: Literal["gpuSeconds", "ttftP95", "tpotP95"] = Field(
        default="gpuSeconds", description="What names one config of a tie: the cheapest, or the quickest."
    )
