"""CPU per event of the load client against a bare ``recv`` loop, in one run: ``python -m bench.client.events``.

The server (the built-in sink) is pinned to one core, the client to another. Every stream gets one event per
tick, as from an engine step. Per number of streams three costs, in microseconds of CPU per event:

* bare: epoll and ``recv``, the bytes kept and nothing else done: the least that Python can do;
* hot: the worker of the load client, sending, kernel stamps and spool included;
* whole: hot, and the later parsing into records.

The two take turns, and the cheapest of several rounds counts: it is the one that was disturbed least.
Times depend on the machine; the ratios are what counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.client.bare import PROMPT_TOKENS, TOKENS, bare
from bench.client.closed import SERVER_CPU, begin, closed_loop, finish
from bench.client.meter import CLIENT_CPU

from goodput.runner.contract import PlannedLoad
from goodput.runner.load.ceiling import sink
from goodput.runner.load.collect import collect
from goodput.runner.load.job import End

STREAMS = (64, 512, 1500)
HOT_LIMIT = 1.5  # times bare
WHOLE_LIMIT = 3.0


@dataclass(frozen=True)
class Costs:
    """Microseconds of CPU per event."""

    streams: int
    bare: float
    hot: float
    whole: float
    spool_bytes: float  # per event


def compare(streams: int, seconds: float, rounds: int) -> Costs:
    """One row of the table."""
    plan = closed_loop(streams, seconds, prompt_tokens=PROMPT_TOKENS, output_tokens=TOKENS)
    tick = 0.025 if streams <= 64 else 0.05
    bares, hots, wholes, spools = [], [], [], []
    for _ in range(rounds):
        with sink(tick, SERVER_CPU) as port:
            bares.append(bare(port, streams, seconds, CLIENT_CPU).micros)
        with sink(tick, SERVER_CPU) as port:
            hot, parsing, spool_bytes = _ours(port, plan)
        hots.append(hot)
        wholes.append(hot + parsing)
        spools.append(spool_bytes)
    return Costs(streams, min(bares), min(hots), min(wholes), spools[-1])


def _ours(port: int, plan: PlannedLoad) -> tuple[float, float, float]:
    """The load client: microseconds per event of the hot path and of parsing, bytes of spool per event."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = begin(plan, f"http://127.0.0.1:{port}", "sink", folder)
        finish(run, (plan.load.window_seconds or 0) + 60)
        events = run.collect().client.events
        cpu = time.process_time()
        collect(folder)  # again: the first one also imports and warms up
        parsing = time.process_time() - cpu
        end = End.read(folder, 0)
        spool = sum(path.stat().st_size for path in folder.glob("spool-*"))
    assert end is not None
    return (end.cpu_ns - end.spin_ns) / 1e3 / events, parsing / events * 1e6, spool / events


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.client.events", description="CPU per event against a bare loop."
    )
    parser.add_argument("--streams", type=int, nargs="+", default=STREAMS)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("CPU per event, microseconds                      (times bare)")
    print(f"{'streams':>7} {'bare':>9} {'hot':>9} {'whole':>9} {'hot':>10} {'whole':>10} {'spool bytes':>12}")
    for streams in options.streams:
        row = compare(streams, options.seconds, options.rounds)
        print(
            f"{streams:>7} {row.bare:>9.1f} {row.hot:>9.1f} {row.whole:>9.1f}"
            f" {row.hot / row.bare:>10.2f} {row.whole / row.bare:>10.2f} {row.spool_bytes:>12.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
