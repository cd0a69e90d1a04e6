"""Programs whose output a person wants to see while they run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

GOODPUT = (sys.executable, "-c", "from goodput.operator.cli import main; main()")


def shown(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """Run to the end, print each line as it comes, and return all. Fails on a status other than zero."""
    with subprocess.Popen(
        command, cwd=folder, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    output = "".join(lines)
    assert process.returncode == 0, output
    return output
