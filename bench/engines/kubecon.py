"""The H100 profile against a published load sweep of vLLM 0.11 on an H100.

    python -m bench.engines.kubecon FOLDER

FOLDER is `inference-perf_kubecon25_h100` (kubernetes-sigs/inference-perf@7de5ef2 demos/kubecon-na-2025): stages
of 60 s, arrivals at a constant rate, about 204 and 63 tokens, no prefix cache, no chunked prefill. Of all this the
profile has seen one number, the time per output token at 1 request/s. TPOT is recomputed from latency and length (the
client's own counts a token too many per chunk); TTFT there is a client's behind a network, here the engine's.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from goodput.engines.simulated.config import CacheConfig, EngineConfig, SchedulerConfig
from goodput.engines.simulated.profile import Profile, load_profile
from goodput.engines.simulated.tokens import DEFAULT_VOCAB_SIZE
from goodput.engines.simulated.virtual import Arrival, serve

NS = 1_000_000_000
PROFILE = "h100-llama-3-8b"
#: Folder to `max_num_seqs`; all other flags are the same.
SWEEPS = {"vllm": 128, "vllm+batch_size": 192}
BUDGET, LENGTH, UTILIZATION, BLOCK = 8192, 512, 0.9, 16


def engine(profile: Profile, sequences: int) -> EngineConfig:
    """As the manifests start it."""
    scheduler = SchedulerConfig(
        max_num_batched_tokens=BUDGET, max_num_seqs=sequences, max_model_len=LENGTH, enable_chunked_prefill=False
    )
    blocks = profile.memory.kv_bytes(UTILIZATION, BUDGET) // (BLOCK * profile.memory.kv_bytes_per_token)
    cache = CacheConfig(block_size=BLOCK, num_gpu_blocks=blocks, enable_prefix_caching=False)
    return EngineConfig(
        model=PROFILE, served_model_name=PROFILE, scheduler=scheduler, cache=cache, vocab_size=DEFAULT_VOCAB_SIZE
    )


def stages(folder: Path) -> Iterator[tuple[int, float, int, int, float, float, float]]:
    """(requests, their rate, tokens in, tokens out, mean TTFT, mean TPOT, requests/s served) of each stage."""
    for path in sorted(folder.glob("stage_*_lifecycle_metrics.json")):
        document = json.loads(path.read_text())
        done, load = document["successes"], document["load_summary"]
        ttft = done["latency"]["time_to_first_token"]["mean"]
        tokens = done["output_len"]["mean"]
        tpot = (done["latency"]["request_latency"]["mean"] - ttft) / (tokens - 1)
        served = done["throughput"]["requests_per_sec"]
        yield (
            load["count"],
            load["requested_rate"],
            round(done["prompt_len"]["mean"]),
            round(tokens),
            ttft,
            tpot,
            served,
        )


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    profile = load_profile(PROFILE)
    print(f"{PROFILE} (synthetic); measured, simulated, and how far off")
    for name, sequences in SWEEPS.items():
        print(f"max_num_seqs={sequences}")
        for count, rate, prompt, output, ttft, tpot, served in stages(folder / name):
            arrivals = (Arrival(round(index / rate * NS), prompt, output) for index in range(count))
            found = np.array(
                [
                    (one.token_ns[0] - one.arrival.arrival_ns, one.token_ns[-1] - one.token_ns[0], one.token_ns[-1])
                    for _, one in serve(engine(profile, sequences), profile, arrivals)
                ]
            )
            ours_ttft, ours_tpot = found[:, 0].mean() / NS, found[:, 1].mean() / NS / (output - 1)
            ours_served = count / (found[:, 2].max() / NS)
            print(
                f"  {rate:6.1f}/s  TPOT {tpot * 1e3:6.2f} {ours_tpot * 1e3:6.2f} ms {ours_tpot / tpot - 1:+6.1%}  "
                f"TTFT {ttft * 1e3:7.1f} {ours_ttft * 1e3:7.1f} ms  "
                f"served {served:6.1f} {ours_served:6.1f}/s {ours_served / served - 1:+6.1%}"
            )


if __name__ == "__main__":
    main()
