"""The simulated server over HTTP: 1,000 streams of 20 tokens/s, one core for it and another for the client.

Requests of 50 s arrive at 20 per second, so that 1,000 are under way; the window is judged, the rest is around it.
Jitter is how far a gap between two tokens of one answer is from the step's 50 ms, as the load client of the runner
sees it (kernel stamps); and how late the server's own clock was at the end of its steps.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import yaml

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.run import CellRecords, LoadRun, RandomIds, Target

STREAMS = 1000
STEP_SECONDS = 0.05
TOKENS = 1000
RATE = STREAMS / (TOKENS * STEP_SECONDS)
WINDOW_SECONDS = 20.0
AIM_SECONDS = 0.002


def jitter(cell: CellRecords, share: float) -> float:
    """Seconds that `share` of the gaps are at most away from the step; the farther edge of each bucket of 1 %."""
    base = cell.itl.base
    far = sorted(
        (max(abs(base**bucket - STEP_SECONDS), abs(base ** (bucket + 1) - STEP_SECONDS)), count)
        for bucket, count in cell.itl.counts.items()
    )
    left = share * sum(count for _, count in far)
    for seconds, count in far:
        left -= count
        if left <= 0:
            return seconds
    raise ValueError("no gap was measured")


def streams() -> bool:
    """Print what server and client saw; False where a jitter is above the aim."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        port = _free_port()
        log = Path(folder) / "server.log"
        with log.open("w") as file:
            server = subprocess.Popen(_command(Path(folder), port), stdout=file, stderr=subprocess.STDOUT)
        try:
            os.sched_setaffinity(server.pid, {cores[0]})
            _wait(f"http://127.0.0.1:{port}/health")
            os.sched_setaffinity(0, {cores[-1]})
            cell = _load(f"http://127.0.0.1:{port}", Path(folder) / "spool")
            cpu_seconds = _cpu_seconds(server.pid)
        finally:
            os.sched_setaffinity(0, set(cores))
            server.send_signal(signal.SIGTERM)
            server.wait(30)
        said = re.search(r"Steps: .*", log.read_text())
    p50, p99 = jitter(cell, 0.5), jitter(cell, 0.99)
    lived = cell.window.ended
    print(
        f"HTTP: {cell.in_flight_opened} streams of {1 / STEP_SECONDS:g} tokens/s, server on core {cores[0]}, ", end=""
    )
    print(f"client on core {cores[-1]}")
    print(
        f"  client: {cell.counts.completed} of {cell.counts.attempted} completed; gap off by p50 {p50 * 1e3:.2f} ms, ",
        end="",
    )
    print(f"p99 {p99 * 1e3:.2f} ms (at most {AIM_SECONDS * 1e3:.0f} ms), stamps: {cell.client.stamp_source}")
    print(f"  server: {said[0] if said else 'said nothing'}; {cpu_seconds / lived:.0%} of its core")
    clock = float(found[1]) / 1e3 if said and (found := re.search(r"p99 ([\d.]+) ms", said[0])) else float("inf")
    return p99 <= AIM_SECONDS and clock <= AIM_SECONDS and cell.counts.completed == cell.counts.attempted


def _command(folder: Path, port: int) -> list[str]:
    profile = {
        "kind": "roofline",
        "name": "even",
        "synthetic": True,
        "source": "a definition: every step takes 50 ms",
        "device": "none",
        "max_model_len": 32768,
        "memory": {
            "total_bytes": 1 << 37,
            "weights_bytes": 0,
            "activation_bytes_per_token": 0,
            "graphs_bytes": 0,
            "kv_bytes_per_token": 1024,
        },
        "step": {
            "overhead_seconds": STEP_SECONDS,
            "blend_exponent": 1,
            **dict.fromkeys(
                (
                    "weights_seconds",
                    "per_token_seconds",
                    "per_decode_kv_token_seconds",
                    "per_decode_seconds",
                    "per_prefill_attention_seconds",
                    "per_sampled_seconds",
                ),
                0,
            ),
        },
    }
    path = folder / "even.yaml"
    path.write_text(yaml.safe_dump(profile))
    flags = ["--profile", str(path), "--port", str(port), "--host", "127.0.0.1"]
    sizes = ["--max-num-seqs", str(2 * STREAMS), "--max-num-batched-tokens", "16384"]
    return [sys.executable, "-m", "goodput.engines.simulated", "even", *flags, *sizes]


def _load(url: str, spool: Path) -> CellRecords:
    load = Load(
        prompt_tokens=16, output_tokens=TOKENS, arrival="constant", request_rate=RATE, window_seconds=WINDOW_SECONDS
    )
    life = TOKENS * STEP_SECONDS
    plan = PlannedLoad(load=load, seed=1, lead_in_seconds=life + 5, drain_seconds=2 * life)
    run = LoadRun(plan, Target.of(url, "even", "completions"), RandomIds(range(1000, 9000), plan.seed), spool)
    run.start()
    try:
        run.wait(4 * life + WINDOW_SECONDS)
        return run.collect()
    finally:
        run.close()


def _wait(url: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + 30
    while True:
        try:
            opener.open(url, timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
