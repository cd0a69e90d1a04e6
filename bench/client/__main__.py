"""The load client side by side with its peers: ``python -m bench.client [--quick] [--write]``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.client.about import about
from bench.client.closed import SERVER_CPU
from bench.client.events import STREAMS, compare
from bench.client.lateness import lateness
from bench.client.measure import Bench
from bench.client.results import ClientResults, Results
from bench.client.table import markdown
from bench.peers.clients import NAMES, find
from bench.peers.tokenizer import write_tokenizer

PAGE = Path(__file__).parents[2] / "docs" / "client-comparison.md"


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    compared: int
    searched: tuple[int, ...]
    rounds: int  # requests per stream
    cost_streams: tuple[int, ...]
    cost_seconds: float
    cost_rounds: int
    hanging: bool


FULL = Scale(1000, (64, 128, 256, 512, 1000, 1500), 3, STREAMS, 6.0, 2, hanging=True)
QUICK = Scale(256, (256,), 3, (512,), 5.0, 1, hanging=False)


def main() -> None:
    """Measure, print, and write the page where asked."""
    parser = argparse.ArgumentParser(prog="python -m bench.client", description="The load client beside its peers.")
    parser.add_argument("--quick", action="store_true", help="256 streams only, no search: a few minutes")
    parser.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}, too")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="these clients")
    parser.add_argument("--no-costs", action="store_true", help="leave out the bare loop and the lateness of sends")
    options = parser.parse_args()
    if (os.cpu_count() or 1) < 2:
        parser.error("server and client need a core each")
    scale, load_average = QUICK if options.quick else FULL, os.getloadavg()[0]
    found, missing = find(options.only)
    fifo = may_use_fifo()
    results = Results(scale.compared, scale.searched, missing=missing)
    if not options.no_costs:
        _costs(results, scale, fifo=fifo)
    with tempfile.TemporaryDirectory(prefix="goodput-bench-") as name:
        tokenizer = write_tokenizer(Path(name) / "tokenizer")
        for client in found:
            entry = ClientResults(client.name, client.version)
            results.clients.append(entry)
            measure(entry, Bench(client, Path(name) / "run", tokenizer, fifo=fifo), scale)
    text = markdown(results, about(fifo=fifo, arguments=sys.argv[1:], load_average=load_average))
    print(text)
    if options.write:
        PAGE.write_text(text)


def _costs(results: Results, scale: Scale, *, fifo: bool) -> None:
    for streams in scale.cost_streams:
        _say(f"CPU per event at {streams} streams, beside a bare loop")
        results.costs.append(compare(streams, scale.cost_seconds, scale.cost_rounds))
    _say("lateness of sends")
    results.lateness = lateness(scale.cost_seconds, SERVER_CPU, fifo=fifo)


def measure(entry: ClientResults, bench: Bench, scale: Scale) -> None:
    """All runs of one client: the search ends where it fails, the number that is compared is always run."""
    for streams in scale.searched:
        if streams == scale.compared or entry.capacity(scale.searched) == (_before(streams, scale.searched), False):
            _say(f"{entry.name}: {streams} streams")
            entry.loads[streams] = bench.load(streams, scale.rounds, cpu=streams == scale.compared)
    _say(f"{entry.name}: scripted answers")
    entry.honesty = bench.honesty()
    if scale.hanging:
        _say(f"{entry.name}: answers that never end")
        entry.hanging = bench.hanging()


def _before(streams: int, searched: Sequence[int]) -> int:
    """The number that was tried before; 0 for the first."""
    at = searched.index(streams)
    return searched[at - 1] if at else 0


def may_use_fifo() -> bool:
    """Whether the server can run in real time, so that the load on its core does not show in its stamps."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        return False
    return True


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
