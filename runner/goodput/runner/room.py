"""How much of the spool a cell may need, and whether there is that much."""

from __future__ import annotations

from goodput.runner import expect
from goodput.runner.contract import PlannedLoad
from goodput.runner.spool import TrialSpool

EVENT_BYTES = 300  # one token's chunk with its head and the spool's record
TOKEN_BYTES = 7  # one prompt id as JSON text
REQUEST_BYTES = 1000


def cell_bytes(planned: PlannedLoad) -> int:
    """Upper estimate of what a cell writes, in bytes."""
    load = planned.load
    seconds = planned.lead_in_seconds + (load.window_seconds or 0.0) + planned.drain_seconds
    requests = expect.most_requests(load, seconds)
    if load.window_requests is not None and not load.concurrency and load.arrival != "burst":
        requests += load.window_requests  # the window's length is not known here
    events = requests * expect.output_tokens(load)
    return round(events * EVENT_BYTES + requests * (expect.prompt_tokens(load) * TOKEN_BYTES + REQUEST_BYTES))


def enough_room(spool: TrialSpool, planned: PlannedLoad, limit_bytes: int | None) -> bool:
    """Whether the next cell fits the disk, and with all that waits for the store the limit."""
    needed = cell_bytes(planned)
    within = limit_bytes is None or spool.used_bytes + needed <= limit_bytes
    return within and needed <= spool.free_bytes
