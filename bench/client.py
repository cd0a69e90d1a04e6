"""CPU per event of the load client against a bare ``recv`` loop, in one run: ``python bench/client.py``.

The server (the built-in sink) is pinned to one core, the client to another. Every stream gets one event per
tick, as from an engine step. Per number of streams three costs are printed, in microseconds of CPU per event:

* bare: epoll and ``recv``, the bytes kept and nothing else done: the least that Python can do;
* hot: the worker of the load client, sending, kernel stamps and spool included;
* whole: hot, and the later parsing into records.

The two take turns, and the cheapest of several rounds counts: it is the one that was disturbed least.
Then the lateness of sends in an open loop. Times depend on the machine; the ratios are what counts.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from goodput.analysis.schema import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.ceiling import sink
from goodput.runner.load.collect import collect
from goodput.runner.load.job import End
from goodput.runner.load.prompts import RandomIds
from goodput.runner.load.run import CellRecords, LoadRun, Target

TOKENS = 60
PROMPT_TOKENS = 32
SERVER_CPU, CLIENT_CPU = 0, 1
RATE = 200.0


@dataclass(frozen=True)
class Cost:
    """Microseconds of CPU per event, and how many events there were."""

    micros: float
    events: int


def bare(port: int, streams: int, seconds: float) -> Cost:
    """The bare loop, in a process of its own."""
    arguments = [sys.executable, __file__, "--bare", str(port), "--streams", str(streams)]
    output = subprocess.run([*arguments, "--seconds", str(seconds)], check=True, stdout=subprocess.PIPE).stdout
    return Cost(**json.loads(output))


def bare_loop(port: int, streams: int, seconds: float) -> Cost:
    """Keep ``streams`` requests under way: read, keep the bytes, ask again at the end of an answer."""
    os.sched_setaffinity(0, {CLIENT_CPU})
    body = json.dumps({"prompt": list(range(PROMPT_TOKENS)), "max_tokens": TOKENS}).encode()
    request = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    poll = select.epoll()
    sockets = {}
    for _ in range(streams):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setblocking(False)
        sockets[sock.fileno()] = sock
        poll.register(sock.fileno(), select.EPOLLIN)
    kept: list[bytes] = []
    cpu, end = time.process_time(), time.monotonic() + seconds
    for sock in sockets.values():
        sock.send(request)
    while time.monotonic() < end:
        for descriptor, _ in poll.poll(0.05):
            sock = sockets[descriptor]
            data = sock.recv(65536)
            kept.append(data)
            if data.endswith(b"\r\n0\r\n\r\n"):
                sock.send(request)
    spent = time.process_time() - cpu
    events = b"".join(kept).count(b"data: {")
    return Cost(spent / events * 1e6, events)


def ours(port: int, load: Load) -> tuple[CellRecords, Cost, float]:
    """The load client: records, cost of the hot path, and of parsing in microseconds per event."""
    plan = PlannedLoad(load=load, seed=1, lead_in_seconds=0.5, drain_seconds=20)
    target = Target.of(f"http://127.0.0.1:{port}", "sink", "completions")
    with tempfile.TemporaryDirectory() as folder:
        run = LoadRun(plan, target, RandomIds(range(1000, 30000), 1), Path(folder), cpus=[CLIENT_CPU])
        run.start()
        if not run.wait((load.window_seconds or 0) + 60):
            raise SystemExit("the cell does not end")
        cell = run.collect()
        cpu = time.process_time()
        collect(Path(folder))  # again: the first one also imports and warms up
        parsing = time.process_time() - cpu
        end = End.read(Path(folder), 0)
        spool = sum(path.stat().st_size for path in Path(folder).glob("spool-*"))
    assert end is not None
    print(f"    spool: {spool / cell.client.events:.0f} bytes per event, {cell.client.coalesced_reads} coalesced reads")
    cost = Cost((end.cpu_ns - end.spin_ns) / 1e3 / cell.client.events, cell.client.events)
    return cell, cost, parsing / cell.client.events * 1e6


def compare(streams: int, seconds: float, rounds: int) -> None:
    """One row of the table."""
    load = Load(
        prompt_tokens=PROMPT_TOKENS,
        output_tokens=TOKENS,
        arrival="closed",
        concurrency=streams,
        window_seconds=seconds,
    )
    tick = 0.025 if streams <= 64 else 0.05
    bares, hots, wholes = [], [], []
    for _ in range(rounds):
        with sink(tick, SERVER_CPU) as port:
            bares.append(bare(port, streams, seconds).micros)
        with sink(tick, SERVER_CPU) as port:
            _, hot, parsing = ours(port, load)
        hots.append(hot.micros)
        wholes.append(hot.micros + parsing)
    base, hot_micros, whole = min(bares), min(hots), min(wholes)
    print(
        f"{streams:>7} {base:>9.1f} {hot_micros:>9.1f} {whole:>9.1f} {hot_micros / base:>9.2f}x {whole / base:>9.2f}x",
        flush=True,
    )


def lateness(seconds: float) -> None:
    """How late an open loop sends."""
    load = Load(
        prompt_tokens=PROMPT_TOKENS,
        output_tokens=4,
        arrival="poisson",
        request_rate=RATE,
        window_seconds=seconds,
    )
    with sink(0.01, SERVER_CPU) as port:
        cell, _, _ = ours(port, load)
    client = cell.client
    assert client.send_lag_p50_seconds is not None
    assert client.send_lag_p99_seconds is not None
    print(
        f"sends at {RATE:g}/s: late by {client.send_lag_p50_seconds * 1e3:.3f} ms (p50),"
        f" {client.send_lag_p99_seconds * 1e3:.3f} ms (p99); client used {client.used_ratio:.1%} of a core"
    )


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[64, 512, 1500])
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bare", type=int, metavar="PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare is not None:
        cost = bare_loop(options.bare, options.streams[0], options.seconds)
        print(json.dumps({"micros": cost.micros, "events": cost.events}))
        return
    print("CPU per event, microseconds      (ratio to bare)")
    print(f"{'streams':>7} {'bare':>9} {'hot':>9} {'whole':>9} {'hot':>10} {'whole':>10}")
    for streams in options.streams:
        compare(streams, options.seconds, options.rounds)
    lateness(options.seconds)


if __name__ == "__main__":
    main()
