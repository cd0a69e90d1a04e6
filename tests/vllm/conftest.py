"""A real vLLM on CPU. Its environment and its model are made on first use: minutes, and 4 GiB of disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench.peers.setup import PeerMissingError, bin_folder
from bench.smollm2 import model_folder


@dataclass(frozen=True)
class Vllm:
    """Where its programs and the model are."""

    programs: Path
    model: Path

    def environment(self) -> dict[str, str]:
        """This shell's, with vLLM's programs on the path and without a model hub."""
        path = os.pathsep.join((str(self.programs), os.environ["PATH"]))
        return {**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}


@pytest.fixture(scope="session")
def vllm() -> Vllm:
    try:
        return Vllm(bin_folder("vllm"), model_folder())
    except PeerMissingError as error:
        pytest.fail(f"no real vLLM here: {error}", pytrace=False)
