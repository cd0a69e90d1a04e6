"""All clients of the comparison, ours first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.peers.aiperf import Aiperf
from bench.peers.base import Client
from bench.peers.guidellm import Guidellm
from bench.peers.inference_perf import InferencePerf
from bench.peers.ours import Ours
from bench.peers.setup import PeerMissingError, bin_folder
from bench.peers.vllm_bench import VllmBench

OURS = "goodput"
_PEERS: dict[str, Callable[[Path], Client]] = {
    "vllm": VllmBench,
    "aiperf": Aiperf,
    "guidellm": Guidellm,
    "inference-perf": InferencePerf,
}
NAMES = (OURS, *_PEERS)


def find(names: Sequence[str]) -> tuple[list[Client], dict[str, str]]:
    """The clients of those names that can be run here, and why the others cannot."""
    clients: list[Client] = []
    missing: dict[str, str] = {}
    for name in names:
        if name == OURS:
            clients.append(Ours())
            continue
        try:
            clients.append(_PEERS[name](bin_folder(name)))
        except PeerMissingError as error:
            missing[name] = str(error)
    return clients, missing
