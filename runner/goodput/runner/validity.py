"""What makes a cell void. A void cell is kept and shown, and never ranked.

One rule per row of `RULES`; the first that objects gives the reason. Not here yet: a TPOT below what the
memory bandwidth allows, which needs the device's bandwidth and the model's size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from goodput.analysis.metrics import most_frequent
from goodput.analysis.schema.cell import Asked, Client, Counts
from goodput.analysis.schema.server import ServerColumns
from goodput.runner import names
from goodput.runner.snapshot import Snapshot

SENT_RATIO = 0.98
LAG_SECONDS = 0.010
USED_RATIO = 0.5
HIT_RATIO = 0.01
DRIFT_RATIO = 0.01
STEP_SECONDS = 0.0005


@dataclass(frozen=True)
class Facts:
    """All that is judged of one cell.

    Attributes:
        opening: idle snapshot before.
        closing: idle snapshot after; None where the same address did not give one.
        client: how the load client fared.
        server: columns; None where the server exposes none.
        open_loop: arrivals were planned.
        fresh_prompts: the prefix cache was empty and no prompt repeats, so hits must be about `planned_hits`.
        samples: taken between the snapshots.
        window_opened: False for a closed loop whose first requests never ended.
        prompt_drift: share by which the server counted other prompt lengths than asked; None: it counted none.
        planned_hits: share of prompt tokens that earlier prompts of the cell begin with, in whole blocks.
        lag_seconds: how late 1 % of requests may be sent.
    """

    opening: Snapshot
    closing: Snapshot | None
    client: Client
    server: ServerColumns | None
    open_loop: bool
    fresh_prompts: bool
    samples: tuple[Snapshot, ...] = ()
    window_opened: bool = True
    prompt_drift: float | None = None
    planned_hits: float = 0.0
    lag_seconds: float = LAG_SECONDS


Check = Callable[[Facts], str | None]


def verdict(facts: Facts) -> tuple[str, str] | None:
    """(reason, message) of the first rule that objects, None for a valid cell."""
    for reason, check in RULES:
        message = check(facts)
        if message is not None:
            return reason, message
    return None


def warnings(counts: Counts | None, server: ServerColumns | None, asked: Asked | None = None) -> tuple[str, ...]:
    """What voids nothing: no server columns, client and server count different requests, no request completed.

    Args:
        counts: of the window; None where nothing was measured.
        server: its counters cover lead-in and tail too.
        asked: what was planned.
    """
    found: list[str] = []
    if server is not None and not server.complete:
        found.append(server.reason or "MetricsGap: the server's gauges are not known")
    if server is not None and server.counts_agree is False:
        reasons = ", ".join(
            f"{count:g} {reason}" for reason, count in (server.requests_finished or {}).items() if count
        )
        client = server.requests_client
        seen = "" if client is None else f"{client.finished} finished, {client.other} otherwise"
        found.append(f"CountsDiffer: the server counts {reasons or 'no requests'}, the client {seen}")
    if counts is not None and counts.attempted == 0:
        found.append("no request was planned inside the window")
    elif counts is not None and counts.completed == 0:
        reason = most_frequent([counts.reasons])
        found.append(f"NothingCompleted: none of {counts.attempted} requests completed, most often: {reason}")
    return (*found, *_unlike_planned(server, asked or Asked()))


def _unlike_planned(server: ServerColumns | None, asked: Asked) -> Iterator[str]:
    """A server may find less in its prefix cache than is there, and rows of a small dataset come again."""
    hits, planned = None if server is None else server.prefix_hit_ratio, asked.prefix_hit_ratio or 0.0
    if hits is not None and hits < planned - HIT_RATIO:
        yield f"PrefixMiss: {hits:.1%} of prompt tokens came from the prefix cache, planned is {planned:.1%}"
    if asked.repeated_requests:
        yield f"RowsRepeated: {asked.repeated_requests} requests repeat a row of the dataset, which is too short"


def _server_gone(facts: Facts) -> str | None:
    return None if facts.closing is not None else "the closing snapshot could not be read from the same address"


def _server_restarted(facts: Facts) -> str | None:
    known = [each.start_time for each in (facts.opening, *facts.samples, facts.closing) if each and each.start_time]
    for before, after in pairwise(known):
        if before != after:
            return f"the server's process started at {after:.3f}, not at {before:.3f}"
    return None


def _counter_reset(facts: Facts) -> str | None:
    last: dict[str, float] = {}
    for snapshot in (facts.opening, *facts.samples, *(() if facts.closing is None else (facts.closing,))):
        for name, value in _counters(snapshot).items():
            if value < last.get(name, value):
                return f"{name} went from {last[name]:g} to {value:g}"
            last[name] = value
    return None


def _counters(snapshot: Snapshot) -> dict[str, float]:
    """All that may only grow and is known: counters, finished requests by reason, values in histograms."""
    counters = {name: value for name in names.COUNTERS if (value := getattr(snapshot, name)) is not None}
    counters |= {f"finished {reason}": count for reason, count in (snapshot.finished or {}).items()}
    return counters | {f"{name} histogram": each.count for name, each in snapshot.histograms.items()}


def _no_window(facts: Facts) -> str | None:
    return None if facts.window_opened else "the first requests of the closed loop did not end: no window opened"


def _client_short(facts: Facts) -> str | None:
    planned, sent = facts.client.planned, facts.client.sent
    return f"sent {sent} of {planned} planned requests" if sent < SENT_RATIO * planned else None


def _schedule_lag(facts: Facts) -> str | None:
    lag = facts.client.send_lag_p99_seconds
    if not facts.open_loop or lag is None or lag <= facts.lag_seconds:
        return None
    return f"1 % of requests were sent {lag * 1000:.1f} ms or more after their planned time"


def _client_saturated(facts: Facts) -> str | None:
    used = facts.client.used_ratio
    return None if used is None or used <= USED_RATIO else f"the client used {used:.0%} of its own ceiling"


def _prefix_hit(facts: Facts) -> str | None:
    ratio = None if facts.server is None else facts.server.prefix_hit_ratio
    if not facts.fresh_prompts or ratio is None or ratio <= facts.planned_hits + HIT_RATIO:
        return None
    return f"{ratio:.1%} of prompt tokens came from the prefix cache, planned is {facts.planned_hits:.1%}"


def _prompt_drift(facts: Facts) -> str | None:
    drift = facts.prompt_drift
    return None if drift is None or drift <= DRIFT_RATIO else f"prompt tokens differ from what was asked by {drift:.1%}"


def _clock_step(facts: Facts) -> str | None:
    step = facts.client.clock_step_seconds
    return None if abs(step) <= STEP_SECONDS else f"the wall clock stepped by {step * 1000:.2f} ms"


RULES: tuple[tuple[str, Check], ...] = (
    ("ServerGone", _server_gone),
    ("ServerRestarted", _server_restarted),
    ("CounterReset", _counter_reset),
    ("NoWindow", _no_window),
    ("ClientShort", _client_short),
    ("ScheduleLag", _schedule_lag),
    ("ClientSaturated", _client_saturated),
    ("PrefixHit", _prefix_hit),
    ("PromptDrift", _prompt_drift),
    ("ClockStep", _clock_step),
)
