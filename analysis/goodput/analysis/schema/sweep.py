"""A sweep as its folder keeps it: what was planned, and what only the driver knows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from goodput.analysis.schema.base import Document, Evidence
from goodput.analysis.schema.planned import Config, Load, Slo


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
