"""A published simulator, Vidur (PyPI 0.0.26, MIT), beside ours in the same run: the same load and step costs.

Below saturation, because its preemption ends in an assertion of its own; and without mixed-step costs, CUDA-graph
padding, prefix cache and metrics, which it has not or which are turned off. LLMServingSim and BLIS are not on PyPI;
AISimulate's package there installs only beside an NVIDIA driver.
"""

import json
import subprocess
import tempfile
import time
from pathlib import Path

from bench.engines.speed import BLOCK, BUDGET, NS, SEQUENCES, Load, engine
from bench.peers.setup import PeerMissingError, bin_folder

from goodput.engines.simulated.virtual import serve

LOAD = Load(8.0, 2048, 256)
REQUESTS = 1000
SCRIPT = Path(__file__).with_name("peer_vidur.py")


def peer() -> None:
    """Print both simulators' seconds, or why there is nothing to compare with."""
    print(
        f"published simulator: {LOAD.rate:g} requests/s of {LOAD.prompt_tokens}/{LOAD.output_tokens} tokens, ", end=""
    )
    print(f"{REQUESTS} requests, the same step costs, one core each")
    config, profile = engine()
    step = profile.step.model_copy(
        update={
            "per_mixed_decode_kv_token_seconds": None,
            "per_mixed_decode_seconds": None,
            "per_decode_seconds": 0.0,
            "per_sampled_seconds": 0.0,
            "cuda_graph_max_tokens": 0,
        }
    )
    plain = profile.model_copy(update={"step": step})
    began = time.perf_counter()
    ended = max(served.token_ns[-1] for _, served in serve(config, plain, LOAD.arrivals(REQUESTS))) / NS
    _line("goodput", ended, time.perf_counter() - began)
    try:
        python = bin_folder("vidur") / "python"
    except PeerMissingError as error:
        print(f"  Vidur: missing: {error}")
        return
    with tempfile.TemporaryDirectory() as folder:
        asked = {
            "costs": step.model_dump(),
            "block_size": BLOCK,
            "blocks": config.cache.num_gpu_blocks,
            "sequences": SEQUENCES,
            "budget": BUDGET,
            "requests": REQUESTS,
            "prompt_tokens": LOAD.prompt_tokens,
            "output_tokens": LOAD.output_tokens,
            "rate": LOAD.rate,
            "folder": folder,
        }
        found = subprocess.run(
            [python, SCRIPT, json.dumps(asked)], check=False, capture_output=True, text=True, cwd=folder
        )
    if found.returncode:
        print(f"  Vidur: failed: {found.stderr.strip().splitlines()[-1]}")
        return
    answer = json.loads(found.stdout.splitlines()[-1])
    _line("Vidur 0.0.26", answer["simulated_seconds"], answer["wall_seconds"])


def _line(name: str, simulated: float, wall: float) -> None:
    print(f"  {name:<14}{simulated:7.1f} s in {wall:6.2f} s: {simulated / wall:6.0f} x real time")
