"""What is sent and what is promised: workload, SLO, objective."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from goodput.analysis import schema
from goodput.operator.spec.base import Part
from goodput.operator.spec.scalars import Rate, Seconds, Text, Tokens

WINDOW_SECONDS = 60.0


class Window(Part):
    """The span whose arrivals are judged: a time or a number of requests."""

    duration_seconds: Seconds | None = Field(
        default=None, alias="duration", description="Length of the window; 1m where requests is not set."
    )
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

    dataset: Literal["random", "sharegpt", "jsonl", "trace"] = Field(
        default="random", description="Where prompts come from. random: token ids of exact length."
    )
    dataset_uri: Text | None = Field(default=None, description="Where the dataset is, for sharegpt, jsonl and trace.")
    prompt_tokens: Annotated[tuple[Tokens, ...], Field(min_length=1, max_length=32)] = Field(
        default=(512,), description="Prompt lengths in tokens. Each makes its own load points."
    )
    output_tokens: Annotated[tuple[Tokens, ...], Field(min_length=1, max_length=32)] = Field(
        default=(128,), description="Output lengths in tokens. Each makes its own load points."
    )
    request_rate: Annotated[tuple[Rate, ...], Field(min_length=1, max_length=32)] | None = Field(
        default=None, description="Open loop: offered requests per second."
    )
    concurrency: (
        Annotated[tuple[Annotated[int, Field(ge=1, le=100_000)], ...], Field(min_length=1, max_length=32)] | None
    ) = Field(default=None, description="Closed loop: requests that are kept in flight.")
    search: Search | None = Field(default=None, description="Looks for the highest rate by itself.")
    arrival: Literal["poisson", "constant", "gamma", "burst"] | None = Field(
        default=None, description="Open loop: how arrivals are spread; without it poisson."
    )
    burstiness: Annotated[float, Field(gt=0, le=1000)] | None = Field(
        default=None, description="gamma: shape of the gaps; 1 is poisson, less is burstier."
    )
    window: Window = Field(
        default_factory=lambda: Window(duration_seconds=WINDOW_SECONDS),
        description="The span whose arrivals are judged.",
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

    def to_document(self) -> schema.Slo:
        """The SLO as stored beside results, in seconds."""
        return schema.Slo(
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
