"""The Transformers baseline in vLLM's own environment: ``python -m bench.peers.baseline`` prints folders for PATH.

Both engines then run on one torch and one transformers. The baseline's program is a line of shell that puts this
tree's engines in front of that environment's Python; it needs no package that vLLM does not need.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
from pathlib import Path

from bench.peers.setup import bin_folder
from testcluster.layout import from_environment

PROGRAM = "goodput-engine-transformers"
_ENGINES = Path(__file__).parents[2] / "engines"


def program_folder() -> Path:
    """A folder with the baseline's program alone, of this tree. Raises `PeerMissingError`."""
    python = bin_folder("vllm") / "python"
    text = f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(_ENGINES))} exec {python} -m goodput.engines.transformers "$@"\n'
    folder = from_environment().cache / "peers" / f"baseline-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    program = folder / PROGRAM
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    return folder


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m bench.peers.baseline", description=__doc__).parse_args()
    print(os.pathsep.join(map(str, (program_folder(), bin_folder("vllm")))))
