"""Long and large: ``python -m bench.soak [--seconds 600] [--requests 1000000]``.

* Minutes at many streams: resident memory of the worker (aim: 200 MiB and flat), then of the process that reads its
  spool (aim: 200 MiB; it keeps a row per request), bytes of spool per event.
* Many requests of 64 tokens, parsed and committed (aim: a million in 10 minutes of one core). Their spool is one that
  a worker recorded, over and over; it needs about 20 KB of disk per request.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.soak import volume
from bench.soak.steady import Memory, Steady, steady

LIMIT_MIB = 200.0
FLAT_MIB = 10.0  # growth that is none
LIMIT_SECONDS_PER_REQUEST = 600 / 1e6
BYTES_PER_REQUEST = 22_000
ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run both parts and print them."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description="The load client, long and large.")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=600, help="0: leave this part out")
    parser.add_argument("--requests", type=int, default=1_000_000, help="0: leave this part out")
    options = parser.parse_args()
    if options.seconds:
        _print_steady(options.streams, steady(options.streams, options.seconds))
    if options.requests:
        _volume(options.requests)


def _print_steady(streams: int, found: Steady) -> None:
    print(f"{streams:,} streams: {found.requests:,} requests, {found.events:,} events")
    print(f"spool: {found.spool_bytes / found.events:.0f} bytes per event, {found.spool_bytes / 1e9:.2f} GB")
    _print_memory("worker", found.worker, flat=True)
    _print_memory("collector", found.collector, flat=False)


def _print_memory(name: str, memory: Memory, *, flat: bool) -> None:
    if not memory.mib:
        print(f"{name}: ended before it was looked at")
        return
    step = max(1, len(memory.mib) // 10)
    shown = ", ".join(f"{memory.seconds[k]:.0f} s {memory.mib[k]:.0f}" for k in range(0, len(memory.mib), step))
    highest, growth = max(memory.mib), memory.growth() or 0.0
    verdict = "met" if highest <= LIMIT_MIB and (growth <= FLAT_MIB or not flat) else "MISSED"
    aim = f"≤ {LIMIT_MIB:g}{', flat' if flat else ''}"
    print(f"{name}: resident MiB {shown}; highest {highest:.0f}, grown by {growth:.1f} ({aim}): {verdict}")


def _volume(requests: int) -> None:
    with tempfile.TemporaryDirectory(prefix="goodput-soak-") as name:
        free = shutil.disk_usage(name).free
        if free < requests * BYTES_PER_REQUEST:
            raise SystemExit(f"{requests:,} requests need {requests * BYTES_PER_REQUEST / 1e9:.0f} GB in {name}")
        spool = volume.prepare(Path(name), requests)
        print(f"spool of {requests:,} requests, recorded and repeated: {spool / 1e9:.2f} GB", flush=True)
        command = [sys.executable, "-m", "bench.soak.volume", name]
        output = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
    text, seconds = output.strip().splitlines()
    limit = requests * LIMIT_SECONDS_PER_REQUEST
    print(f"{text}; {float(seconds):.1f} s of {limit:.0f} s: {'met' if float(seconds) <= limit else 'MISSED'}")


if __name__ == "__main__":
    main()
