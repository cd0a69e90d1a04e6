"""CPU of a whole process tree, and its end."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.client.meter import run

BURN = "import time\nwhile time.process_time() < 0.2: pass\n"
BY_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}], check=True)"


def test_cpu_of_children_counts(tmp_path: Path) -> None:
    spent = run([sys.executable, "-c", BY_A_CHILD], folder=tmp_path, limit_seconds=60, cpu=0)
    assert spent.ended == "ok"
    assert 0.2 <= spent.cpu_seconds <= spent.wall_seconds + 0.1


def test_a_failure_is_told_and_its_words_are_kept(tmp_path: Path) -> None:
    spent = run([sys.executable, "-c", "raise SystemExit('no')"], folder=tmp_path, limit_seconds=60, cpu=0)
    assert spent.ended == "failed"
    assert (tmp_path / "client.log").read_text().strip() == "no"


def test_what_does_not_end_is_ended(tmp_path: Path) -> None:
    code = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)"
    )
    spent = run([sys.executable, "-c", code], folder=tmp_path, limit_seconds=1, cpu=0)
    assert spent.ended == "hangs"
    assert spent.wall_seconds < 60
