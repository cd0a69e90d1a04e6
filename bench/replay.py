"""Replays an Azure LLM trace against the golden server: are requests sent when and as they should be?

    python -m bench.replay FILE --speed 10 --seconds 60

Times: the window's planned arrivals against the file's own (divided by the speed), and sent against planned.
Lengths: each prompt and each answer against the file's row. Server and client share the machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from bench.golden.process import golden
from bench.golden.script import Case, Script, Stream

from goodput.analysis.schema.planned import Load
from goodput.runner.contract import PlannedLoad
from goodput.runner.dataset.sample import TraceLengths
from goodput.runner.dataset.trace import parse_trace
from goodput.runner.load.processes import NANOSECONDS
from goodput.runner.load.run import CellRecords, LoadRun, RandomIds, Target

TOKENS_PER_EVENT = 8
MAX_TOKENS = 1 << 20
MOST_LAG_MS = 10.0  # as a valid cell


def replay(trace: TraceLengths, speed: float, seconds: float, lead_in: float, processes: int) -> CellRecords:
    """One cell against a golden server that answers as many tokens as are asked."""
    load = Load(dataset="trace", max_tokens=MAX_TOKENS, arrival="replay", speed=speed, window_seconds=seconds)
    plan = PlannedLoad(load=load, seed=1, lead_in_seconds=lead_in, drain_seconds=30)
    script = Script(default=Case("trace", Stream(per_event=TOKENS_PER_EVENT)))
    with golden(script) as server, tempfile.TemporaryDirectory() as folder:
        run = LoadRun(
            plan,
            Target.of(server.url, "golden", "completions"),
            RandomIds(range(1000, 30_000), plan.seed),
            Path(folder),
            lengths=trace,
            replayed=trace.times(speed),
            processes=processes,
        )
        run.start()
        try:
            if not run.wait(lead_in + seconds + 60):
                run.stop()
                run.wait(10)
            return run.collect()
        finally:
            run.close()


def report(trace: TraceLengths, speed: float, cell: CellRecords) -> bool:
    """Print what agrees; False where something does not."""
    window = cell.requests.filter(cell.requests["in_window"])
    numbers = window["request"].to_numpy()
    planned, sent = window["planned_s"].to_numpy(), window["sent_s"].to_numpy()
    file_s = trace.times(1.0)[numbers] / NANOSECONDS / speed
    lag_ms = (sent - planned) * 1000
    gaps_ms = (np.diff(sent) - np.diff(file_s)) * 1000
    asked = [trace.at(int(number)) for number in numbers]
    got = zip(window["prompt_tokens"].to_pylist(), window["output_tokens"].to_pylist(), strict=True)
    exact = sum(pair == wanted for pair, wanted in zip(got, asked, strict=True))
    prompts, outputs = np.array(asked).T
    gaps_p50, gaps_p99 = np.quantile(np.abs(gaps_ms), [0.5, 0.99])
    lag_p50, lag_p99, lag_max = np.quantile(lag_ms, [0.5, 0.99, 1.0])
    client, seconds = cell.client, cell.window.seconds
    lines = {
        "window": f"{seconds:g} s, {len(numbers)} requests, {len(numbers) / seconds:.2f}/s",
        "prompts": f"mean {prompts.mean():.1f}, max {prompts.max()} tokens",
        "answers": f"mean {outputs.mean():.1f}, max {outputs.max()} tokens",
        "completed": f"{cell.counts.completed} of {cell.counts.attempted}",
        "both lengths exact": f"{exact} of {len(numbers)}",
        "planned against file": f"at most {np.abs(planned - file_s).max() * NANOSECONDS:.0f} ns",
        "sent against planned": f"p50 {lag_p50:.3f} ms, p99 {lag_p99:.3f} ms, max {lag_max:.3f} ms",
        "gaps sent against file": f"p50 {gaps_p50:.3f} ms, p99 {gaps_p99:.3f} ms",
        "client": f"{client.processes} process(es), {client.events} events, used {client.used_ratio or 0:.0%}",
    }
    for name, text in lines.items():
        print(f"  {name:<24}{text}")
    return bool(exact == len(numbers) == cell.counts.completed and lag_p99 <= MOST_LAG_MS)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--speed", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--lead-in", type=float, default=5.0)
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args()
    trace = TraceLengths(parse_trace(asked.file.read_bytes()), MAX_TOKENS, seed=None)
    print(f"{asked.file.name} at {asked.speed:g} x speed")
    agreed = report(trace, asked.speed, replay(trace, asked.speed, asked.seconds, asked.lead_in, asked.processes))
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
