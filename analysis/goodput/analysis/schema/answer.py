"""What an analysis tells the driver."""

from __future__ import annotations

from typing import Literal

from goodput.analysis.schema.base import Document, Verdict


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
