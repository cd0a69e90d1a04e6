"""The schema of a BenchmarkSweep's status: what is written there, and nothing else is kept by the API server."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from goodput.operator.spec.base import Part

Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Number = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class StatusPlan(Part):
    """What was planned at acceptance."""

    sentinel: bool | None = Field(default=None, description="Whether the reference runs around every block.")
    configs: Count | None = Field(default=None, description="Configs.")
    loads: Count | None = Field(default=None, description="Load points.")
    blocks: Count | None = Field(default=None, description="Blocks.")
    cells: Count | None = Field(default=None, description="Cells, sentinels included.")
    primes: Count | None = Field(default=None, description="Starts that fill the compile cache before the first block.")


class StatusCounts(Part):
    """Cells by state, and what was started."""

    measured: Count | None = Field(default=None, description="Cells with a valid result.")
    void: Count | None = Field(default=None, description="Cells measured without a valid result.")
    failed: Count | None = Field(default=None, description="Cells whose server or runner failed.")
    pruned: Count | None = Field(default=None, description="Cells left out because of another cell's result.")
    not_run: Count | None = Field(default=None, description="Cells that will not be measured.")
    pending: Count | None = Field(default=None, description="Cells still to be measured.")
    lost: Count | None = Field(default=None, description="Cells measured whose records could not be stored.")
    trials: Count | None = Field(default=None, description="Server starts so far.")
    failed_configs: Count | None = Field(default=None, description="Configs that were given up.")


class StatusTrial(Part):
    """A trial that is running now."""

    config: str | None = Field(default=None, description="Id of the config.")
    block: str | None = Field(default=None, description="Block.")
    attempt: Count | None = Field(default=None, description="Attempt, from 1.")
    step: str | None = Field(default=None, description="What it is doing.")
    load: str | None = Field(default=None, description="Id of the load point that is measured.")


class StatusEstimate(Part):
    """What the sweep is expected to take."""

    trials: Count | None = Field(default=None, description="Server starts.")
    gpu_hours: Number | None = Field(default=None, description="GPU hours.")
    finish_by: Time | None = Field(default=None, description="When it should be done.")


class StatusVerdict(Part):
    """What the comparison says so far."""

    name: Literal["winner", "tie", "undecided", "infeasible", "drift"] | None = Field(
        default=None, description="The verdict."
    )
    reason: str | None = Field(default=None, description="Why, in one word.")
    message: str | None = Field(default=None, description="Why, in a sentence.")


class StatusBest(Part):
    """The leading config with its verdict."""

    engine: str | None = Field(default=None, description="Name of the engine.")
    config: str | None = Field(default=None, description="Id of the config.")
    label: str | None = Field(default=None, description="Its swept flags, in short.")
    args: dict[str, str] | None = Field(default=None, description="Its swept flags.")
    load: str | None = Field(default=None, description="Id of the load point that gives its score.")
    goodput: Number | None = Field(default=None, description="Good requests per second there.")
    interval: Annotated[tuple[float, ...], Field(max_length=2)] | None = Field(
        default=None, description="95 % interval of the goodput, over blocks: lower and upper end."
    )
    verdict: Literal["winner", "tie", "undecided", "infeasible", "drift"] | None = Field(
        default=None, description="The verdict."
    )


class StatusTop(Part):
    """One of the best rows."""

    config: str | None = Field(default=None, description="Id of the config.")
    load: str | None = Field(default=None, description="Id of the load point.")
    goodput: Number | None = Field(default=None, description="Good requests per second.")
    attainment: Number | None = Field(default=None, description="Share of good requests.")
    feasible: bool | None = Field(default=None, description="Whether the SLO's attainment is reached.")


class StatusError(Part):
    """The last thing that went wrong."""

    reason: str | None = Field(default=None, description="Reason, from one list.")
    message: str | None = Field(default=None, description="What happened, and what to do.")


class StatusCondition(Part):
    """One condition."""

    type: Annotated[str, Field(max_length=64)] = Field(description="Accepted, PreflightPassed, Complete, …")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: Annotated[str, Field(max_length=1024)] = Field(description="Why, in one word.")
    message: Annotated[str, Field(max_length=32768)] | None = Field(default=None, description="Why, in words.")
    observed_generation: int | None = Field(default=None, description="Generation it was judged for.")
    last_transition_time: Time = Field(description="When its status last changed.")


class SweepStatus(Part):
    """What the operator reports: counts, the current trials and the leaders, never a list of cells."""

    phase: (
        Literal[
            "Pending",
            "Preflight",
            "Queued",
            "Running",
            "Suspended",
            "Finishing",
            "Succeeded",
            "PartiallyFailed",
            "Failed",
            "Cancelled",
        ]
        | None
    ) = Field(default=None, description="Where the sweep stands.")
    observed_generation: int | None = Field(default=None, description="Generation that this status is about.")
    evidence: Literal["measured", "synthetic"] | None = Field(
        default=None, description="synthetic: a simulated engine, whose numbers are a model's."
    )
    plan: StatusPlan | None = Field(default=None, description="What was planned at acceptance.")
    counts: StatusCounts | None = Field(default=None, description="Cells by state, and what was started.")
    progress: str | None = Field(default=None, description="Cells that are settled, of all: 3/16.")
    current: Annotated[tuple[StatusTrial, ...], Field(max_length=10)] | None = Field(
        default=None, description="Trials that are running now."
    )
    estimate: StatusEstimate | None = Field(default=None, description="What the sweep is expected to take.")
    gpu_hours_used: Number | None = Field(default=None, description="GPU hours used so far.")
    verdict: StatusVerdict | None = Field(default=None, description="What the comparison says so far.")
    best: StatusBest | None = Field(default=None, description="The leading config with its verdict.")
    top: Annotated[tuple[StatusTop, ...], Field(max_length=10)] | None = Field(
        default=None, description="The best rows."
    )
    results_uri: str | None = Field(
        default=None, alias="resultsURI", description="Folder with all records, tables and the report."
    )
    last_error: StatusError | None = Field(default=None, description="The last thing that went wrong.")
    started_at: Time | None = Field(default=None, description="When work began.")
    suspended_at: Time | None = Field(default=None, description="Since when it is suspended.")
    suspended_seconds: Number | None = Field(default=None, description="Time spent suspended before.")
    completed_at: Time | None = Field(default=None, description="When it ended.")
    conditions: Annotated[tuple[StatusCondition, ...], Field(max_length=16)] | None = Field(
        default=None,
        description="Accepted, PreflightPassed, Progressing, ResultsCommitted, Complete, Failed, Degraded.",
    )
