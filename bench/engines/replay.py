"""Replays recorded runs of a real vLLM through the simulated engine, in virtual time.

    python -m bench.engines.replay FOLDER

FOLDER is `llmservingsim_vllm_runs` (casys-kaist/LLMServingSim@5daddb2 bench/examples: vLLM 0.19.0, 300 requests
at 10 per second, one folder per device and model). The profiles are the shipped ones. What was fitted on what:
their kernels on kernel tables alone, no run; their host overhead, one number, on the mean TPOT of the run of the
*other* device. So nothing was fitted on the run that is compared. Preemptions are not in the records, and only the
run whose cache fills has any. What can be seen there are the rises of "preempted and not yet back" between samples
a second apart, counted alike on both sides (samples are not exact: where nothing is preempted they show up to 7).
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from bench.engines.runs import Run, Times, read_run, replay

from goodput.engines.simulated.profile import load_profile

#: Folder of a run to the profile that it is replayed with, or why it is not.
PROFILES = {"RTX4090/Llama-3.1-8B": "rtx-4090-llama-3.1-8b", "RTXPRO6000/Llama-3.1-8B": "rtx-pro-6000-llama-3.1-8b"}
WHY_NOT = {
    "RTXPRO6000/Qwen3-32B": "two GPUs, tensor parallel: no kernel table of the model, collectives are not modelled",
    "RTXPRO6000/Qwen3-30B-A3B-Instruct-2507": "two engines behind one balancer with experts in lockstep: not modelled",
}
FULL = 0.99
#: Name, unit, value, and the largest relative error that is within the aim.
Measure = tuple[str, str, Callable[[Times], float], float]
MEASURES: tuple[Measure, ...] = (
    ("mean TPOT", "ms", lambda times: times.tpot * 1e3, 0.10),
    ("mean E2E", "s", lambda times: times.e2e, 0.15),
    ("mean TTFT", "s", lambda times: times.ttft, 0.25),
)
SEEN: Measure = ("preemptions seen", "", lambda times: times.net_preemptions, 0.25)
#: Preemptions of a run by other sources than its files.
STATED = {"RTX4090/Llama-3.1-8B": 246}


def compare(run: Run, simulated: Times, stated: int | None) -> bool:
    """Print measured and simulated values; False where one misses its aim."""
    print(f"  {'':<18}{'measured':>10}{'simulated':>10}    {'error':>8}")
    fills = run.most_kv_used >= FULL
    good = True
    for name, unit, value, aim in (*MEASURES, SEEN) if fills else MEASURES:
        good &= _line(name, unit, (value(run.measured), value(simulated)), aim)
    if stated is not None and simulated.preemptions is not None:
        good &= _line("preemptions (said)", "", (stated, simulated.preemptions), SEEN[-1])
    if not fills:
        print(f"  the cache does not fill; preemptions simulated: {simulated.preemptions}")
        good &= simulated.preemptions == 0
    return good


def _line(name: str, unit: str, pair: tuple[float, float], aim: float) -> bool:
    real, ours = pair
    error = ours / real - 1
    within = abs(error) <= aim
    print(f"  {name:<18}{real:10.2f}{ours:10.2f} {unit:<3}{error:+8.1%}  {'within' if within else 'MISSES'} ±{aim:.0%}")
    return within


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    good = True
    for name, known in PROFILES.items():
        run, profile = read_run(folder / name / "vllm"), load_profile(known)
        config = run.config(profile)
        print(
            f"{name}: {len(run.arrivals)} requests, profile {known} (synthetic), {config.cache.num_gpu_blocks} blocks"
        )
        good &= compare(run, replay(run, profile), STATED.get(name))
    for name, reason in WHY_NOT.items():
        print(f"{name}: not replayed: {reason}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
