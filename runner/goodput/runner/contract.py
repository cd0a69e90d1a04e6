"""What the operator gives the runner (``trial.json``) and what it gets back (the outcome).

The runner never asks the API server anything: whatever only the cluster knows is in the trial plan.
"""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from goodput.analysis.schema.base import Document, Endpoint, Evidence
from goodput.analysis.schema.planned import Config, Load, Slo
from goodput.analysis.schema.provenance import GpuFacts, StartLog
from goodput.analysis.schema.sweep import SpecDocument

OUTCOME_BYTES = 3500  # the kubelet keeps the last 4,096 bytes of a termination message


class ServerFacts(Document):
    """The server of this trial, as the driver sees it."""

    url: str  # of the API and of /metrics: pod IP and port, where nothing else answers; or of an external server
    external: bool = False  # it is the user's: no reset, no prefix check, and it may have served before
    pod_uid: str | None = None
    image: str | None = None
    image_digest: str | None = None
    node: str | None = None
    pod: str | None = None  # its name
    gpus: tuple[GpuFacts, ...] = ()  # as far as the driver sees them
    gpu_metrics_url: str | None = None  # of a DCGM exporter on the server's node
    order: int  # k-th server start of the sweep
    start_seconds: float | None = None  # started → Ready
    log: StartLog | None = None  # what the server's log says of its start
    model_revision: str | None = None  # commit of the snapshot in this machine's cache of the model hub
    model_content: str | None = None  # hash over a local folder's config, weights index and safetensors headers
    api_key_env: str | None = None  # name of the variable that holds the key
    ca_file: str | None = None  # PEM of the only authorities to trust; None: the system's store
    expects: dict[str, str] = Field(default_factory=dict)  # flags that must be resolved as asked


class OutputCheck(Document):
    """Prompts that every config is asked before its first cell, to see whether it changes the output."""

    seed: int  # the same for all trials of the sweep
    prompts: int = 16
    tokens: int = 32


class PlannedLoad(Document):
    """One load point with everything that is fixed in the plan."""

    load: Load
    seed: int  # of this block and load: the same for all configs and attempts
    lead_in_seconds: float = Field(ge=0)
    drain_seconds: float = Field(gt=0)  # how long requests of the window may take after its end


class DatasetTarget(Document):
    """Where the workload's file is. Credentials are those of the results."""

    kind: Literal["sharegpt", "jsonl", "trace"]
    uri: str
    endpoint: str | None = None
    region: str | None = None


class ResultsTarget(Document):
    """Where records go. Credentials come from the environment."""

    uri: str
    endpoint: str | None = None
    region: str | None = None


class TrialPlan(Document):
    """``trial.json``: one server lifetime: verify, warm, measure these loads in this order."""

    v: Literal[1] = 1
    sweep: str  # results folder, e.g. "default.chunk-budget.1a2b3c4d"
    evidence: Evidence
    config: Config
    block: str
    attempt: int = Field(ge=1)
    model: str
    served_model: str
    model_revision: str | None = None
    server: ServerFacts
    endpoint: Endpoint = "completions"
    dataset: DatasetTarget | None = None  # None: random prompts
    token_id_range: tuple[int, int] | None = None  # half-open; None: ids the server's /tokenize returns
    warmup_max_seconds: float = Field(default=120, ge=0)
    warmup_concurrency: int = Field(ge=1)
    warmup_seed: int
    output_check: OutputCheck | None = None
    loads: tuple[PlannedLoad, ...]  # ascending, the same for all configs
    slo: Slo
    results: ResultsTarget
    deadline_seconds: float = Field(gt=0)  # of the whole trial; the runner ends by itself before it
    upload_hold_seconds: float = 3600  # how long finished cells wait for a store that refuses

    @property
    def name(self) -> str:
        """Trial folder below the sweep's folder."""
        return f"trials/config={self.config.id}/block={self.block}/attempt={self.attempt}"


class OpenCell(Document):
    """A planned cell that this attempt leaves without a valid result."""

    load: str
    outcome: Literal["void", "failed", "not_run"]
    reason: str


class Outcome(Document):
    """The runner's last word, its termination message."""

    v: Literal[1] = 1
    planned: int
    valid: int  # cells that have a result now, whoever measured them
    open: tuple[OpenCell, ...] = Field(default=(), alias="not", serialization_alias="not")
    more: int = 0  # open cells that did not fit
    why: str = ""  # what ended the trial early, in words
    lost: int = 0  # measured cells that could not be stored in time

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @property
    def done(self) -> bool:
        """Every planned cell has a result."""
        return self.valid == self.planned

    def message(self) -> str:
        """At most `OUTCOME_BYTES` of JSON: cells are dropped from the end and counted in ``more``.

        ``why`` must be short enough to fit without them.
        """
        for keep in range(len(self.open), -1, -1):
            short = self.model_copy(update={"open": self.open[:keep], "more": self.more + len(self.open) - keep})
            text = short.model_dump_json(by_alias=True)
            if len(text.encode()) <= OUTCOME_BYTES:
                return text
        raise AssertionError("an outcome without open cells always fits")


class RunnerStatus(Document):
    """``GET /status`` of a running runner: nice to have, never relied on."""

    v: Literal[1] = 1
    step: Literal["verifying", "warming", "resetting", "lead-in", "measuring", "draining", "uploading", "done"]
    load: str | None = None
    done: int = 0
    planned: int = 0
    measuring: bool = True  # False once the server is no longer needed
    upload_error: str | None = None


class CanaryInput(Document):
    """What ``goodput-runner canary`` reads: where results go, and ``spec.json`` to write there create-only."""

    v: Literal[1] = 1
    results: ResultsTarget
    spec: SpecDocument


class CanaryAnswer(Document):
    """The canary's termination message. Its exit code is 0 when ``ok``, else 1."""

    v: Literal[1] = 1
    ok: bool
    reason: (
        Literal["UploadDenied", "NoSuchBucket", "StoreUnreachable", "ConditionalCreateIgnored", "SpecConflict"] | None
    ) = None
    message: str = ""
