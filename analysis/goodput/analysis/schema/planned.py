"""What a sweep plans: loads, limits, configs, and the key of a cell."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from goodput.analysis import ids
from goodput.analysis.schema.base import Arrival, Dataset, Document, LengthDistribution, Positive


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
