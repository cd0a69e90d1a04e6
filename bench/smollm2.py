"""The model that a real server is tested with: ``python -m bench.smollm2`` prints its folder.

SmolLM2-135M-Instruct, whose weights (Q4_1, GGUF) a Python package carries. They are written out once, in bfloat16, as
the folder that Hugging Face's libraries and vLLM read, into ``$GOODPUT_CACHE/models``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from bench.peers.setup import PINS, PIP_OPTIONS, PeerMissingError, bin_folder, once
from testcluster.layout import from_environment

NAME = "SmolLM2-135M-Instruct"
_CONVERT = Path(__file__).with_name("smollm2_convert.py")
_PINS = PINS / "smollm2.txt"


def model_folder() -> Path:
    """Where the model is; makes it first where it is not there yet. Its files may be read by every user.

    Raises:
        PeerMissingError: vLLM's environment, whose libraries read the weights, cannot be installed, or they failed.
    """
    folder = from_environment().cache / "models" / NAME
    with once(folder, _PINS, _CONVERT) as wanted:
        if wanted:
            try:
                _make(folder, bin_folder("vllm"))
            except subprocess.CalledProcessError as error:
                last = error.stderr.strip().splitlines()[-1:]
                raise PeerMissingError(f"the model cannot be made: {' '.join(last)}") from error
    return folder


def _make(folder: Path, programs: Path) -> None:
    """Install the weights and what reads them beside the folder, convert, and throw them away."""
    packages = folder.with_name(f"{folder.name}.packages")
    for old in (folder, packages):
        shutil.rmtree(old, ignore_errors=True)
    try:
        _run([str(programs / "pip"), *PIP_OPTIONS, "--target", str(packages), "-r", str(_PINS)])
        _run([str(programs / "python"), str(_CONVERT), str(folder)], {"PYTHONPATH": str(packages)})
    finally:
        shutil.rmtree(packages, ignore_errors=True)
    for path in folder.iterdir():
        path.chmod(0o644)


def _run(command: list[str], variables: dict[str, str] | None = None) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **(variables or {})})


if __name__ == "__main__":
    print(model_folder())
