"""Running programs, and progress lines with times."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from testcluster.errors import CommandError

_START = time.monotonic()


def say(message: str) -> None:
    """Write one progress line to standard error, with the seconds since the program started."""
    print(f"[{time.monotonic() - _START:7.1f} s] {message}", file=sys.stderr, flush=True)


@contextmanager
def step(message: str) -> Iterator[None]:
    """Announce a step and, when it ends well, the seconds that it took."""
    say(f"{message} ...")
    begin = time.monotonic()
    yield
    say(f"{message}: done in {time.monotonic() - begin:.1f} s")


def run(
    argv: list[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bytes | None = None,
    check: bool = True,
) -> str:
    """Run a program to its end and return what it wrote to standard output.

    ``env`` is laid over the present environment. Raises CommandError on a status other than zero,
    unless ``check`` is false.
    """
    done = subprocess.run(
        argv,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        input=stdin if stdin is not None else b"",
        capture_output=True,
        check=False,
    )
    out = done.stdout.decode(errors="replace")
    if check and done.returncode != 0:
        raise CommandError(argv, done.returncode, out + done.stderr.decode(errors="replace"))
    return out
