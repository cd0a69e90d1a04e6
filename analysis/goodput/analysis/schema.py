"""The documents that are stored or handed from part to part, with their versions (`v`).

Every document is a frozen, strict pydantic model: an unknown field is an error, not a surprise later.
Times are seconds, rates are per second, shares are ratios in 0..1. ``None`` means "not known" or "not
applicable"; it is never written as 0.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from goodput.analysis import ids

SCHEMA_VERSION = 1
PRIME = "prime"
"""Block id of the starts that fill the compile cache: they measure nothing."""

Evidence = Literal["measured", "synthetic"]
LoadState = Literal["stable", "saturated", "not_judged"]
CellOutcome = Literal["valid", "void"]
CellState = Literal["measured", "void", "failed", "pruned", "not_run"]
RequestOutcome = Literal["completed", "failed", "incomplete", "not_sent"]
Arrival = Literal["poisson", "constant", "gamma", "burst", "replay", "closed"]
Dataset = Literal["random", "sharegpt", "jsonl", "trace"]
LengthDistribution = Literal["uniform", "normal", "lognormal"]
Endpoint = Literal["completions", "chat"]
Verdict = Literal["winner", "tie", "undecided", "infeasible", "drift"]
Positive = Annotated[float, Field(gt=0)]


class Document(BaseModel):
    """Base of all stored documents: frozen, and nothing unknown is let in."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="null")

    def to_json(self) -> bytes:
        """The stored bytes."""
        return self.model_dump_json(indent=1).encode() + b"\n"


class Stage(Document):
    """A part of a window, requests per second: one rate, or a ramp that ends at ``end_rate``."""

    duration_seconds: Positive
    rate: Positive
    end_rate: Positive | None = None


class Load(Document):
    """One point on the load axis: what is asked for, and when.

    Open loop: ``request_rate``, ``stages``, ``speed`` (``arrival: replay``) or nothing but the number of requests
    (``arrival: burst``); closed loop (``arrival: closed``): ``concurrency``. Lengths are None where the dataset
    gives them. ``length_distribution`` None: every request has exactly these lengths; else they are the means, and
    ``length_variation`` is standard deviation / mean. ``prompt_tokens`` includes the shared ``prefix_tokens``.
    With ``stages`` the window is their sum.
    """

    dataset: Dataset = "random"
    dataset_uri: str | None = None
    prompt_tokens: int | None = Field(default=None, ge=1)
    output_tokens: int | None = Field(default=None, ge=1)
    length_distribution: LengthDistribution | None = None
    length_variation: Positive | None = None
    max_tokens: int | None = Field(default=None, ge=2)  # prompt and output together; what is longer is left out
    prefix_groups: int | None = Field(default=None, ge=1)
    prefix_tokens: int | None = Field(default=None, ge=1)
    arrival: Arrival
    burstiness: Positive | None = None
    request_rate: Positive | None = None
    stages: tuple[Stage, ...] | None = None
    speed: Positive | None = None  # 10: the trace passes ten times as fast
    concurrency: int | None = Field(default=None, ge=1)
    window_seconds: Positive | None = None
    window_requests: int | None = Field(default=None, ge=1)

    @property
    def id(self) -> str:
        """First ten hex digits of the hash over everything that is set."""
        return ids.digest(self.model_dump(exclude_none=True))

    @property
    def open_loop(self) -> bool:
        """Arrivals are planned, whatever the server does."""
        return self.arrival != "closed"

    @property
    def highest_rate(self) -> float | None:
        """Highest planned requests per second; None where no rate is planned."""
        if self.stages:
            return max(max(stage.rate, stage.end_rate or 0.0) for stage in self.stages)
        return self.request_rate

    @property
    def amount(self) -> float:
        """What orders loads of one shape: rate, speed, concurrency, or the size of a burst."""
        return self.highest_rate or self.speed or float(self.concurrency or self.window_requests or 0)

    @property
    def lengths(self) -> str:
        """The lengths as names show them: ``2048→64``, ``~2048→64`` where they vary, else the dataset's name."""
        if self.prompt_tokens is None:
            return self.dataset
        return f"{'~' if self.length_distribution else ''}{self.prompt_tokens}→{self.output_tokens}"

    @property
    def label(self) -> str:
        """Short name for tables and plots, e.g. ``2048→64 @ 4/s`` or ``2048→64 × 16``; unique within a sweep."""
        return f"{self.lengths} {self._amount_label()}"

    def _amount_label(self) -> str:
        if self.request_rate:
            return f"@ {ids.text(self.request_rate)}/s"
        if self.stages:
            rates = [rate for stage in self.stages for rate in (stage.rate, stage.end_rate) if rate]
            return f"@ {ids.text(min(rates))}-{ids.text(max(rates))}/s"
        if self.speed:
            return f"at {ids.text(self.speed)}x speed"
        return f"× {self.concurrency}" if self.concurrency else f"burst of {self.window_requests}"


class Slo(Document):
    """Limits in seconds; a limit that is not set does not judge. ``attainment`` is the share that must be good."""

    ttft: Positive | None = None
    tpot: Positive | None = None
    itl: Positive | None = None
    e2e: Positive | None = None
    attainment: float = Field(default=0.9, gt=0, le=1)


class Config(Document):
    """One point on the server axis: engine and effective flags (engine args overlaid by the config's)."""

    engine: str
    kind: Literal["vllm", "transformers", "simulated", "external"]
    flags: dict[str, str]
    swept: dict[str, str] = Field(default_factory=dict)  # the flags that configs.grid or configs.list names
    gpus: int = Field(default=0, ge=0)
    command: tuple[str, ...] = ()  # the exact server command

    @property
    def id(self) -> str:
        """First ten hex digits of the hash over engine and effective flags."""
        return ids.config_id(self.engine, self.flags)

    @property
    def label(self) -> str:
        """Short name for tables and plots: the swept flags, else the engine's name."""
        swept = " ".join(f"{key}={value}" for key, value in sorted(self.swept.items()))
        return f"{self.engine} {swept}".strip()


class CellKey(Document):
    """One load point of one (config, block): it gets exactly one valid result, or a state that says why not."""

    config: str
    load: str
    block: str

    @property
    def prefix(self) -> str:
        """Folder of all attempts, below the sweep's folder."""
        return f"cells/config={self.config}/load={self.load}/block={self.block}"

    def attempt_prefix(self, attempt: int) -> str:
        """Folder of one attempt."""
        return f"{self.prefix}/attempt={attempt}"


class SpecDocument(Document):
    """``spec.json``: written create-only before anything is measured; all that analysis needs to know of the plan."""

    v: Literal[1] = 1
    namespace: str
    name: str
    uid: str
    folder: str
    evidence: Evidence
    spec: dict[str, object]  # the defaulted spec as JSON, secrets by reference only
    model: str
    configs: tuple[Config, ...]
    loads: tuple[Load, ...]
    blocks: tuple[str, ...]  # of the exhaustive plan, e.g. ("0", "1", "2")
    sentinels: tuple[str, ...] = ()  # block ids s00, s01, ...: measured with the reference config only
    reference: str  # config id
    slo: Slo
    objective: Literal["goodput", "outputThroughput"] = "goodput"
    tie_break: Literal["gpuSeconds", "ttftP95", "tpotP95"] = "gpuSeconds"
    indifference: float = Field(default=0.05, gt=0, lt=1)


class TrialState(Document):
    """What became of one trial attempt, as only the driver knows it."""

    config: str
    block: str
    attempt: int
    reason: str | None = None  # why it ended without all its cells valid
    gpu_seconds: float | None = None  # server pod running → gone, times GPUs
    start_seconds: float | None = None  # server started → Ready
    start_order: int | None = None


class CellWithoutResult(Document):
    """A planned cell that has no valid result, with its state and the reason."""

    config: str
    load: str
    block: str
    state: Literal["void", "failed", "pruned", "not_run"]
    reason: str


class StatesDocument(Document):
    """``states.json``: overwritten by every analysis from its input, never by a lower generation."""

    v: Literal[1] = 1
    generation: int
    final: bool = False
    trials: tuple[TrialState, ...] = ()
    cells: tuple[CellWithoutResult, ...] = ()


class CommittedFile(Document):
    """One file of a commit."""

    sha256: str
    size: int
    rows: int | None = None


class Commit(Document):
    """``_COMMIT.json``: create-only, the last file of an attempt's folder; what has none is ignored."""

    v: Literal[1] = 1
    key: CellKey
    attempt: int
    outcome: CellOutcome
    reason: str | None = None
    files: dict[str, CommittedFile]


class Result(Document):
    """``_RESULT.json``: create-only, names the one valid attempt of a cell."""

    v: Literal[1] = 1
    key: CellKey
    attempt: int
    commit_sha256: str


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


class ServerHistogram(Document):
    """A histogram as the server keeps it. Bucket k holds values in (edges[k-1], edges[k]]; the last one the rest."""

    edges: tuple[float, ...]
    counts: tuple[float, ...]  # one more than edges
    total: float | None = None  # of all values

    @property
    def count(self) -> float:
        """How many values."""
        return sum(self.counts)

    @property
    def mean(self) -> float | None:
        """Their mean, exact; None where there is none."""
        return None if self.total is None or not self.count else self.total / self.count

    def within(self, limit: float | None) -> float | None:
        """Share of values at or below the limit. None unless the limit is an edge: nothing is interpolated."""
        if limit is None or limit not in self.edges or not self.count:
            return None
        return sum(self.counts[: self.edges.index(limit) + 1]) / self.count


class RequestTally(Document):
    """Requests of a whole cell as the client saw them, to hold against the server's own counts."""

    finished: int  # the stream came to its end, with a finish reason
    other: int  # sent, and ended in any other way: closed by the client, refused, broken


PrefixReset = Literal["verified", "said"]
"""``verified``: a text that was in the prefix cache was not after the reset. ``said``: the server says so, no more."""


class ServerColumns(Document):
    """Server side of a cell. Counters: deltas between the idle snapshots; gauges: samples inside the window."""

    complete: bool  # False: the gauges are null
    reason: str | None = None  # why not complete
    samples: int = 0
    gap_seconds: float | None = None  # longest time in the window without a sample
    preemptions: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    prefix_reset: PrefixReset | None = None  # before the cell; None: it was not, or nobody knows
    requests_finished: dict[str, float] | None = None  # by finished_reason
    requests_client: RequestTally | None = None
    counts_agree: bool | None = None  # server and client saw the same number of requests
    kv_usage_mean: float | None = None
    kv_usage_p95: float | None = None
    kv_usage_max: float | None = None
    running_mean: float | None = None
    running_p95: float | None = None
    running_max: float | None = None
    waiting_mean: float | None = None
    waiting_p95: float | None = None
    waiting_max: float | None = None
    gauge_samples: dict[str, int] = Field(default_factory=dict)  # that mean, p95 and max rest on
    histograms: dict[str, ServerHistogram] = Field(default_factory=dict)  # over the whole cell: ttft, itl, tpot, ...
    names: dict[str, str] = Field(default_factory=dict)  # quantity → the metric's name that it was read from
    kv_blocks: int | None = None
    block_size: int | None = None

    @property
    def prefix_hit_ratio(self) -> float | None:
        """Share of prompt tokens found in the prefix cache; None where nothing was asked."""
        if not self.prefix_queries or self.prefix_hits is None:
            return None
        return self.prefix_hits / self.prefix_queries


class DatasetFacts(Document):
    """The file that a workload comes from. Rows that cannot be sent (no prompt, no answer) are ``unusable_rows``."""

    uri: str
    sha256: str
    rows: int
    unusable_rows: int


class Spread(Document):
    """Of a gauge's samples, over all GPUs of the server."""

    mean: float
    min: float
    max: float
    samples: int


class GpuColumns(Document):
    """The GPUs during the window, as a DCGM exporter shows them. What it does not show is None."""

    reason: str | None = None  # why there is nothing
    gpus: tuple[str, ...] = ()  # UUIDs
    samples: int = 0
    sm_clock_mhz: Spread | None = None
    memory_clock_mhz: Spread | None = None
    power_watts: Spread | None = None
    temperature_celsius: Spread | None = None
    violations: dict[str, float] = Field(default_factory=dict)  # rise of throttling time, in the exporter's unit (ns)
    throttled: dict[str, int] | None = None  # samples by clock event reason


class GpuFacts(Document):
    """One GPU of a server."""

    uuid: str | None = None
    name: str | None = None
    memory_gib: float | None = None
    driver: str | None = None


class Provenance(Document):
    """What was measured on what. Whatever could not be learnt is None."""

    engine_version: str | None = None
    engine_commit: str | None = None
    model: str | None = None
    model_revision: str | None = None  # commit of the snapshot where it is known, else what was asked for
    model_content: str | None = None  # of a local folder: hash over config, weights index, safetensors headers, sizes
    image: str | None = None
    image_digest: str | None = None
    torch: str | None = None
    cuda: str | None = None
    driver: str | None = None
    gpu: str | None = None
    gpu_uuid: str | None = None
    gpu_memory_gib: float | None = None  # of the smallest of its GPUs
    node: str | None = None
    url: str | None = None  # of an external server, which holds no user and no password
    resolved: dict[str, str] = Field(default_factory=dict)  # scheduler config as the server resolved it
    goodput_version: str | None = None
    simulated: str | None = None  # a simulation in virtual time: whose step times, and where they come from
    dataset: DatasetFacts | None = None


CompileCache = Literal["hit", "miss", "unknown"]
"""``unknown``: the server compiles and its log says neither. None in a document: nothing is compiled."""


class StartLog(Document):
    """What a vLLM server's log says of its start, and nothing that it does not say. Sizes in tokens or GiB."""

    engine_version: str | None = None
    weights_seconds: float | None = None
    model_load_seconds: float | None = None  # weights included
    model_memory_gib: float | None = None
    compile_cache: CompileCache | None = None
    compile_seconds: float | None = None
    graph_capture_seconds: float | None = None
    graph_capture_gib: float | None = None
    init_engine_seconds: float | None = None  # profile, KV cache, warm-up; compilation and capture included
    kv_cache_memory_gib: float | None = None
    kv_cache_tokens: int | None = None
    kv_blocks: int | None = None  # of the GPU; only older versions, and where it is overridden
    cpu_blocks: int | None = None
    max_concurrency: float | None = None  # requests of max_model_len that the KV cache holds
    attention_backend: str | None = None
    chunked_prefill_tokens: int | None = None  # the budget, where prefills are cut
    preemption_warnings: int = 0  # as far as the log was read
    model_snapshot: str | None = None  # commit of the model hub's snapshot that was loaded
    resolved: dict[str, str] = Field(default_factory=dict)  # of the line with the resolved config


class Start(Document):
    """One server start."""

    order: int  # k-th server of the sweep
    seconds: float | None = None  # started → Ready
    compile_cache: CompileCache | None = None  # as the log says it
    log: StartLog | None = None  # None: no vLLM server, or its log could not be read
    warmup_seconds: float | None = None
    warmup_requests: int | None = None
    warmup_steady: bool | None = None


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


class Best(Document):
    """The leader as status shows it."""

    config: str
    load: str | None = None
    goodput: float | None = None  # the score: good requests (objective outputThroughput: output tokens) per second
    interval: tuple[float, float] | None = None


class TopRow(Document):
    """One of the best rows, for status."""

    config: str
    load: str | None = None
    goodput: float | None = None
    attainment: float | None = None
    feasible: bool = False


class AnalysisAnswer(Document):
    """What analysis tells the driver: its termination message, at most 3,500 bytes."""

    v: Literal[1] = 1
    generation: int
    block: str | None = None
    drop: tuple[str, ...] = ()
    stop: bool = False
    verdict: Verdict | None = None
    reason: str = ""
    message: str = ""
    best: Best | None = None
    top: tuple[TopRow, ...] = ()
    uploaded_logs: tuple[str, ...] = ()  # log packs that are safe in the store, by their names in the input
    lost: int = 0  # cells whose records could not be stored
