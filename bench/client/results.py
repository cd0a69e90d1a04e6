"""Everything that one comparison measured, and what it is held against."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.client.events import HOT_LIMIT, WHOLE_LIMIT, Costs
from bench.client.lateness import Lateness
from bench.client.measure import Load
from bench.client.score import Honesty

TIMES_CHEAPER = 3.0  # than every peer
ERROR_SECONDS = 0.001  # of TTFT and gaps, p99
LATE_SECONDS = 0.002
HELD_ERROR_SECONDS = 0.005  # up to which a client is said to hold its streams


@dataclass
class ClientResults:
    """One client. A text instead of a result says why there is none."""

    name: str
    version: str
    loads: dict[int, Load] = field(default_factory=dict)
    honesty: Honesty | str | None = None
    hanging: Honesty | str | None = None

    def capacity(self, searched: tuple[int, ...]) -> tuple[int, bool]:
        """Most streams with every error p99 within the limit, and whether more were tried and failed."""
        best = 0
        for streams in searched:
            load = self.loads.get(streams)
            worst = load.timing.worst_p99 if load is not None and load.problem is None else None
            if worst is None or worst > HELD_ERROR_SECONDS:
                return best, load is not None
            best = streams
        return best, False


@dataclass
class Results:
    """Ours comes first in ``clients``."""

    compared: int  # streams at which all clients are put side by side
    searched: tuple[int, ...]
    costs: list[Costs] = field(default_factory=list)
    lateness: Lateness | None = None
    clients: list[ClientResults] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Aim:
    """One aim, with the measured value. ``met`` None: it was not measured."""

    text: str
    measured: str
    met: bool | None


def aims(results: Results) -> Iterator[Aim]:
    """All aims of the load client."""
    for cost in results.costs:
        hot, whole = cost.hot / cost.bare, cost.whole / cost.bare
        yield Aim(f"hot path ≤ {HOT_LIMIT:g} × bare recv, {cost.streams:,} streams", f"{hot:.2f} ×", hot <= HOT_LIMIT)
        yield Aim(
            f"with parsing ≤ {WHOLE_LIMIT:g} × bare recv, {cost.streams:,} streams",
            f"{whole:.2f} ×",
            whole <= WHOLE_LIMIT,
        )
    if results.lateness is not None:
        late, said = results.lateness.arrived_p99, results.lateness.sent_p99
        yield Aim(
            "sends at 200/s late by ≤ 2 ms (p99, at the server)",
            f"{late * 1e3:.2f} ms ({said * 1e3:.2f} as recorded)",
            late <= LATE_SECONDS,
        )
    if not results.clients:
        return
    ours, *peers = results.clients
    load = ours.loads.get(results.compared)
    if load is not None:
        for name, error in (("TTFT", load.timing.ttft_p99), ("gap", load.timing.gap_p99)):
            text = f"{name} error ≤ 1 ms (p99, {results.compared:,} streams)"
            yield Aim(text, *(("–", None) if error is None else (f"{error * 1e3:.2f} ms", error <= ERROR_SECONDS)))
    for peer in peers:
        yield _cheaper(load, peer, results.compared)
    for what, found in (("that end", ours.honesty), ("that never end", ours.hanging)):
        if isinstance(found, Honesty):
            called = len(found.called_success)
            yield Aim(f"no failure called a success, of {found.failures} {what}", str(called), called == 0)


def _cheaper(ours: Load | None, peer: ClientResults, streams: int) -> Aim:
    text = f"CPU per event: {peer.name} needs ≥ {TIMES_CHEAPER:g} × ours ({streams:,} streams)"
    theirs = peer.loads.get(streams)
    if ours is None or theirs is None or not ours.cpu_per_event or theirs.cpu_per_event is None:
        return Aim(text, "–", None)
    ratio = theirs.cpu_per_event / ours.cpu_per_event
    return Aim(text, f"{ratio:.1f} ×", ratio >= TIMES_CHEAPER)


def better_peers(results: Results) -> Iterator[str]:
    """Where a peer did better than ours, one sentence each."""
    if not results.clients:
        return
    ours, *peers = results.clients
    for peer in peers:
        mine, theirs = ours.loads.get(results.compared), peer.loads.get(results.compared)
        if mine is None or theirs is None:
            continue
        for name, own, other in (
            ("TTFT error p50", mine.timing.ttft_p50, theirs.timing.ttft_p50),
            ("TTFT error p99", mine.timing.ttft_p99, theirs.timing.ttft_p99),
            ("gap error p99", mine.timing.gap_p99, theirs.timing.gap_p99),
            ("CPU per event", mine.cpu_per_event, theirs.cpu_per_event),
            ("peak memory", mine.peak_mib, theirs.peak_mib),
        ):
            if own is not None and other is not None and other < own:
                yield f"{peer.name} has the smaller {name}."
        if isinstance(ours.honesty, Honesty) and isinstance(peer.honesty, Honesty):
            own_wrong, other_wrong = len(ours.honesty.called_failure), len(peer.honesty.called_failure)
            if other_wrong < own_wrong:
                yield f"{peer.name} fails fewer true successes."
