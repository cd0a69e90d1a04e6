"""How fast virtual time passes, where it goes, and what memory it takes; one core.

The load: Poisson arrivals, 20 requests/s of 2,048 and 256 tokens, on the H100 profile with vLLM's defaults for it.
"""

import cProfile
import multiprocessing
import pstats
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from goodput.engines.simulated.config import CacheConfig, EngineConfig, SchedulerConfig
from goodput.engines.simulated.profile import RooflineProfile, load_profile
from goodput.engines.simulated.tokens import DEFAULT_VOCAB_SIZE
from goodput.engines.simulated.virtual import Arrival, Served, serve

NS = 1_000_000_000
PROFILE = "h100-llama-3-8b"
AIM, HOPE = 200.0, 1000.0
BUDGET, SEQUENCES, BLOCK = 8192, 1024, 16  # vLLM's API server on an H100
UTILIZATION = 0.92
REQUESTS = 4000
TRIES = 3
SHOWN = 8


@dataclass(frozen=True)
class Load:
    """Poisson arrivals of equal requests."""

    rate: float
    prompt_tokens: int
    output_tokens: int

    def arrivals(self, number: int, seed: int = 1) -> Iterator[Arrival]:
        """The first `number` of them."""
        dice = random.Random(seed)
        seconds = 0.0
        for _ in range(number):
            seconds += dice.expovariate(self.rate)
            yield Arrival(round(seconds * NS), self.prompt_tokens, self.output_tokens)


FULL = Load(20.0, 2048, 256)
#: Below the capacity of the profile, so that the number of live requests does not grow with the run.
LIGHT = Load(20.0, 512, 64)


def engine() -> tuple[EngineConfig, RooflineProfile]:
    """The profile, and the config that vLLM would resolve on its device."""
    profile = load_profile(PROFILE)
    assert isinstance(profile, RooflineProfile)
    blocks = profile.memory.kv_bytes(UTILIZATION, BUDGET) // (BLOCK * profile.memory.kv_bytes_per_token)
    config = EngineConfig(
        model=PROFILE,
        served_model_name=PROFILE,
        scheduler=SchedulerConfig(
            max_num_batched_tokens=BUDGET, max_num_seqs=SEQUENCES, max_model_len=profile.max_model_len
        ),
        cache=CacheConfig(block_size=BLOCK, num_gpu_blocks=blocks),
        vocab_size=DEFAULT_VOCAB_SIZE,
    )
    return config, profile


@dataclass(frozen=True)
class Spent:
    """What a run took, in seconds: simulated, of the wall clock, of the CPU; and the mean TTFT in it."""

    simulated: float
    wall: float
    cpu: float
    ttft: float


def run(load: Load, number: int) -> Spent:
    """Results are looked at and dropped."""
    config, profile = engine()
    began, began_cpu = time.perf_counter(), time.process_time()
    end_ns, ttft_ns = 0, 0
    for _, served in serve(config, profile, load.arrivals(number)):
        end_ns = max(end_ns, served.token_ns[-1])
        ttft_ns += served.token_ns[0] - served.arrival.arrival_ns
    return Spent(end_ns / NS, time.perf_counter() - began, time.process_time() - began_cpu, ttft_ns / number / NS)


def speed() -> bool:
    """Print how many times faster than real time it is; False below the aim."""
    print(
        f"virtual time: {PROFILE}, {FULL.rate:g} requests/s of {FULL.prompt_tokens}/{FULL.output_tokens} tokens, ",
        end="",
    )
    print(f"{REQUESTS} requests, one core, best of {TRIES}")
    best = min((run(FULL, REQUESTS) for _ in range(TRIES)), key=lambda one: one.wall)
    ratio = best.simulated / best.wall
    print(f"  {best.simulated:.1f} s in {best.wall:.2f} s: {ratio:.0f} x real time ", end="")
    print(
        f"(at least {AIM:.0f}; hoped for {HOPE:.0f}); by CPU seconds, {best.cpu:.2f}: {best.simulated / best.cpu:.0f} x"
    )
    saturated = best.simulated > 1.1 * REQUESTS / FULL.rate
    print(f"  the profile's engine serves {REQUESTS / best.simulated:.1f} requests/s of this: ", end="")
    print("it is saturated, so running requests fill the KV cache" if saturated else f"TTFT {best.ttft:.2f} s (mean)")
    return ratio >= AIM


def where() -> None:
    """Print which functions take the time (their own, calls in C included)."""
    config, profile = engine()
    profiler = cProfile.Profile(builtins=False)
    profiler.runcall(_drain, serve(config, profile, FULL.arrivals(REQUESTS // 2)))
    rows = [
        (own, calls, f"{file.rsplit('/', 1)[-1]}:{line} {name}")
        for (file, line, name), (_, calls, own, _, _) in pstats.Stats(profiler).stats.items()  # type: ignore[attr-defined]
    ]
    total = sum(own for own, _, _ in rows)
    print("where the time goes (under a profiler, which makes calls dearer):")
    for own, calls, name in sorted(rows, reverse=True)[:SHOWN]:
        print(f"  {own / total:5.0%}  {calls:9,} calls  {name}")


def memory() -> bool:
    """Print the peak memory of 10^4 and 10^5 requests, each in a fresh process; False where it grows with them."""
    print(f"memory: {LIGHT.rate:g} requests/s of {LIGHT.prompt_tokens}/{LIGHT.output_tokens} tokens, results streamed")
    context = multiprocessing.get_context("spawn")
    peaks = []
    for number in (1_000, 10_000, 100_000):
        with context.Pool(1) as pool:
            peak_mib, live = pool.apply(_peak, (number,))
        print(f"  {number:7,} requests: peak {peak_mib:.1f} MiB, at most {live} live")
        peaks.append(peak_mib)
    return peaks[-1] < 1.1 * peaks[1]


def _peak(number: int) -> tuple[float, int]:
    config, profile = engine()
    seen = 0
    live = 0

    def counted() -> Iterator[Arrival]:
        nonlocal seen, live
        for arrival in LIGHT.arrivals(number):
            seen += 1
            live = max(live, seen - ended)
            yield arrival

    ended = 0
    for ended, _ in enumerate(serve(config, profile, counted()), start=1):  # noqa: B007  # `counted` reads it
        pass
    # not getrusage: what a process had before exec counts there
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024, live


def _drain(served: Iterator[tuple[int, Served]]) -> None:
    for _ in served:
        pass
