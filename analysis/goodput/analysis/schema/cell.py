"""A cell's document: what became of it, and everything that its tables take from it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from goodput.analysis.schema.base import CellOutcome, Document, Evidence, LoadState
from goodput.analysis.schema.planned import CellKey, Config, Load, Slo
from goodput.analysis.schema.provenance import Provenance, Start
from goodput.analysis.schema.server import GpuColumns, ServerColumns


class Window(Document):
    """Where a cell's time went. Seconds from the cell's start unless said otherwise."""

    started_unix: float  # wall clock of the cell's start, seconds since the epoch
    lead_in_seconds: float
    opened: float
    closed: float
    ended: float  # last request ended or was closed
    drained: bool  # every window request ended before the drain deadline
    schedule_sha256: str  # over planned times and lengths of lead-in and window
    prompts_sha256: str  # over the token ids of the prompts of lead-in and window

    @property
    def seconds(self) -> float:
        """Length of the window."""
        return self.closed - self.opened


class Client(Document):
    """How the load client fared: what decides whether its numbers can be trusted."""

    processes: int
    planned: int
    sent: int
    send_lag_p50_seconds: float | None
    send_lag_p99_seconds: float | None
    send_lag_max_seconds: float | None = None
    cpu_seconds: float
    events: int
    reads: int
    coalesced_reads: int
    ceiling_events_per_second: float | None
    used_ratio: float | None  # of its own ceiling: busy CPU of the busiest process / what it may have
    stamp_source: Literal["kernel", "user", "virtual"]  # virtual: a simulated clock
    clock_step_seconds: float  # change of wall − monotonic clock over the cell
    connections_max: int
    descriptors_max: int | None = None  # file descriptors of the process that had the most
    descriptors_limit: int | None = None


class LogHistogram(Document):
    """Counts per bucket of 1 % width: bucket k holds values in [1.01^k, 1.01^(k+1)) seconds; ``zero`` those at 0."""

    base: float = 1.01
    zero: int = 0
    counts: dict[int, int] = Field(default_factory=dict)


class Counts(Document):
    """Outcomes of the planned arrivals of the window: attempted is the denominator of every rate and ratio."""

    attempted: int
    completed: int
    failed: int
    incomplete: int
    not_sent: int
    reasons: dict[str, int] = Field(default_factory=dict)


class Asked(Document):
    """What the requests of a cell were planned to ask for. Lengths are those of the window's arrivals."""

    prompt_tokens_mean: float | None = None
    prompt_tokens_max: int | None = None
    output_tokens_mean: float | None = None
    output_tokens_max: int | None = None
    prefix_hit_ratio: float | None = None  # prompt tokens that earlier prompts of the cell begin with, whole KV blocks
    repeated_requests: int | None = None  # of lead-in and window: their dataset row was sent before
    left_out_rows: int | None = None  # of the dataset, as far as it was needed: longer than max_tokens


class Outputs(Document):
    """What the server answered to the prompts of the output check, temperature 0: token ids, else text."""

    prompts_sha256: str
    continuations: tuple[tuple[int, ...] | str, ...]


class CellDocument(Document):
    """``cell.json``: everything about one attempt at one cell that is not per request."""

    v: Literal[1] = 1
    evidence: Evidence
    key: CellKey
    attempt: int
    role: Literal["cell", "probe"] = "cell"
    config: Config
    load: Load
    slo: Slo
    outcome: CellOutcome
    reason: str | None = None
    message: str | None = None
    warnings: tuple[str, ...] = ()
    load_state: LoadState
    makespan_seconds: float | None = None  # of a burst that completed: from the burst to its last end
    in_flight_opened: int | None = None
    in_flight_closed: int | None = None
    window: Window | None = None
    counts: Counts | None = None
    asked: Asked = Asked()
    delivered_requests: int | None = None  # by delivery inside the window
    delivered_output_tokens: int | None = None
    delivered_total_tokens: int | None = None
    client: Client | None = None
    server: ServerColumns | None = None
    gpu: GpuColumns | None = None  # None: no exporter was named
    itl: LogHistogram | None = None
    outputs: Outputs | None = None  # of the trial; None: not checked
    start: Start
    provenance: Provenance
