"""The results of one cell as the trial gets them, and the note that lets another process read them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from goodput.analysis.schema.base import Document, Endpoint, LoadState
from goodput.analysis.schema.cell import Client, Counts, LogHistogram, Window
from goodput.runner.contract import PlannedLoad


@dataclass(frozen=True)
class CellRecords:
    """All that the client knows of a cell.

    Attributes:
        requests: columns of `records.REQUESTS_SCHEMA`; every arrival up to the cell's end.
        in_flight_opened: requests in flight when the window opened; None: it never did.
        delivered_output_tokens: tokens whose stamp lies in the window, of whatever request.
        delivered_requests: completed requests whose last token lies in the window.
        delivered_total_tokens: output tokens, and the prompts whose first token lies in the window.
        prompt_drift_ratio: |Σ prompt tokens the server counted − Σ asked| / Σ asked over the window;
            None where it counted none.
        monotonic_opened: CLOCK_MONOTONIC seconds of the window's start, for joining scrapes.
        window_opened: False: a closed loop whose first requests never ended; then there is no window.
        stopped: the cell was ended before its time.
        retried: requests sent again because a kept-alive connection was dead.
    """

    requests: pa.Table
    window: Window
    counts: Counts
    client: Client
    itl: LogHistogram
    load_state: LoadState
    in_flight_opened: int | None
    in_flight_closed: int | None
    delivered_requests: int
    delivered_output_tokens: int
    delivered_total_tokens: int
    prompt_drift_ratio: float | None
    monotonic_opened: float
    monotonic_closed: float
    window_opened: bool
    stopped: bool
    retried: int
    asked: Asked


@dataclass(frozen=True)
class Asked:
    """What was planned for the requests, as far as it differs from one to the next.

    Attributes:
        prompt_tokens: of each planned arrival of the window.
        output_tokens: likewise.
        shared: tokens at the prompt's beginning that an earlier prompt began with → requests of the whole cell.
        sent_prompt_tokens: sum over the requests that were sent.
        repeated: requests of lead-in and window that repeat a row of the dataset.
        left_out: rows of the dataset that were too long.
    """

    prompt_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]
    shared: dict[int, int]
    sent_prompt_tokens: int
    repeated: int
    left_out: int


class CellNote(Document):
    """``cell.json`` in the spool folder: what is needed to read the cell, besides the job."""

    plan: PlannedLoad
    endpoint: Endpoint
    start_monotonic_ns: int
    started_unix: float
    schedule_sha256: str
    prompts_sha256: str
    ceiling_events_per_second: float | None = None
    unique_prompts: int | None = None  # from this request on prompts repeat; None: they never do
    left_out_rows: int = 0
