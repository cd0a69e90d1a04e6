"""What a cell's requests were planned to ask for, and what follows from it for the judgement (pure)."""

from __future__ import annotations

from statistics import fmean

from goodput.analysis.schema.cell import Asked
from goodput.analysis.schema.planned import Load
from goodput.analysis.schema.server import ServerColumns
from goodput.runner.load.beginnings import BLOCK_TOKENS
from goodput.runner.load.run import CellRecords
from goodput.runner.validity import LAG_SECONDS

BURST_LAG_RATIO = 0.01


def asked_of(records: CellRecords, server: ServerColumns | None) -> Asked:
    """What the requests asked for; shared beginnings in whole blocks of the server's size."""
    asked, block = records.asked, (server.block_size if server is not None else None) or BLOCK_TOKENS
    hits = sum(tokens // block * block * requests for tokens, requests in asked.shared.items())
    return Asked(
        prompt_tokens_mean=fmean(asked.prompt_tokens) if asked.prompt_tokens else None,
        prompt_tokens_max=max(asked.prompt_tokens, default=None),
        output_tokens_mean=fmean(asked.output_tokens) if asked.output_tokens else None,
        output_tokens_max=max(asked.output_tokens, default=None),
        prefix_hit_ratio=hits / asked.sent_prompt_tokens if asked.sent_prompt_tokens else None,
        repeated_requests=asked.repeated,
        left_out_rows=asked.left_out,
    )


def lag_seconds(load: Load, records: CellRecords) -> float:
    """How late 1 % of requests may be sent: of a burst, which is sent in one go, also 1 % of its makespan."""
    return max(LAG_SECONDS, BURST_LAG_RATIO * records.window.seconds if load.arrival == "burst" else 0.0)


def makespan_seconds(load: Load, records: CellRecords) -> float | None:
    """From a burst to its last end; None unless all its requests completed."""
    done = records.counts.attempted > 0 and records.counts.completed == records.counts.attempted
    return records.window.seconds if load.arrival == "burst" and done else None
