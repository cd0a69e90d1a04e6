"""What the page of the comparison says about how and where it was measured."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from bench.client.measure import GAP_SECONDS, HANG_LIMIT_SECONDS, HANG_TIMEOUT_SECONDS, TOKENS, TTFT_SECONDS

_METHOD = """\
One server whose truth is known (`bench/golden`) on one core{real_time}, one client at a time on another. Every stream
is a closed loop of equal requests: first token after {ttft:g} ms, then one every {gap:g} ms, {tokens} in all. The first
request of each stream is not judged. Errors are |reported − true|. True is, of an arrival, the kernel's stamp of the
request's last byte at the server, which a busy server cannot delay; of a token, the server's stamp before its send.
CPU and memory are those of the client's whole process tree, parsing and records included; CPU per event is the
difference to a run with one request per stream. What a client takes to start differs by seconds from run to run, which
a quick run is too short for: its CPU per event and the ratios of it are rough. “Held” is what the server saw under way,
mean. Peers run from
`constraints/peers/` (for Linux on x86-64 only, made by `constraints/lock_peers.py`), each in an environment of its own.
Answers that never end time out after {timeout:g} s where a client has such a setting; one that has not ended after
{limit:g} s hangs."""


def about(*, fifo: bool, arguments: Sequence[str], load_average: float) -> list[str]:
    """The head of the page. The load average (1 minute) is that before the run: what else the machine had to do."""
    command = " ".join(["python -m bench.client", *arguments])
    made = (
        f"Made by `make bench-client` (`{command}`) on {time.strftime('%Y-%m-%d', time.gmtime())}:"
        f" {os.cpu_count()} cores ({_cpu_model()}), Linux {platform.release()}, Python {platform.python_version()}."
        f" Load average before it: {load_average:.1f}."
    )
    method = _METHOD.format(
        real_time=" in real-time scheduling" if fifo else "",
        ttft=TTFT_SECONDS * 1e3,
        gap=GAP_SECONDS * 1e3,
        tokens=TOKENS,
        timeout=HANG_TIMEOUT_SECONDS,
        limit=HANG_LIMIT_SECONDS,
    )
    return ["# The load client and its peers", made, method]


def _cpu_model() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
