"""A real vLLM on CPU. Its environment and its model are made on first use: minutes, and 4 GiB of disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench.peers.baseline import program_folder
from bench.peers.setup import PeerMissingError, bin_folder
from bench.smollm2 import model_folder


@dataclass(frozen=True)
class Vllm:
    """Where its programs, the baseline's, and the model are."""

    programs: Path
    baseline: Path
    model: Path

    def environment(self) -> dict[str, str]:
        """This shell's, with the programs of both engines on the path and without a model hub."""
        path = os.pathsep.join((str(self.baseline), str(self.programs), os.environ["PATH"]))
        return {**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}


@pytest.fixture(scope="session")
def vllm() -> Vllm:
    try:
        return Vllm(bin_folder("vllm"), program_folder(), model_folder())
    except PeerMissingError as error:
        pytest.fail(f"no real vLLM here: {error}", pytrace=False)
