"""What every load client of the comparison is asked for, and what it gives back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

MODEL = "golden"  # what the golden server calls its model
PROMPT_TOKENS = 64


@dataclass(frozen=True)
class Task:
    """One run against a server.

    Attributes:
        requests: how many in all.
        concurrency: requests under way at once.
        folder: for its files; relative paths of the command start here.
        timeout_seconds: of one request, for clients that have such a setting.
    """

    port: int
    requests: int
    concurrency: int
    output_tokens: int
    folder: Path
    tokenizer: Path
    timeout_seconds: float

    @property
    def url(self) -> str:
        """Address of the server, without a path."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class Answer:
    """What a client says of one request.

    Attributes:
        started: seconds of CLOCK_MONOTONIC; None: it does not say.
        ttft: seconds.
        gaps: seconds between tokens, or between events where it knows no more; None: it does not say.
        mean_gap: where it has no single gaps.
    """

    success: bool
    started: float | None
    ttft: float | None = None
    gaps: tuple[float, ...] | None = None
    mean_gap: float | None = None


class Client(Protocol):
    """A load client: how it is run and how its results are read."""

    @property
    def name(self) -> str:
        """As its makers write it."""
        ...

    @property
    def version(self) -> str:
        """As installed."""
        ...

    def prepare(self, task: Task) -> list[str]:
        """Write what it needs into the task's folder; returns the command."""
        ...

    def environment(self) -> Mapping[str, str]:
        """Variables that it wants."""
        ...

    def answers(self, task: Task) -> list[Answer]:
        """All requests that it reports. Raises `OSError` or `ValueError` where there is no result."""
        ...


OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def monotonic(unix_seconds: float) -> float:
    """A time of the wall clock on CLOCK_MONOTONIC."""
    return unix_seconds - (time.time() - time.monotonic())
