"""Children as processes: stopped with grace, killed with all that they started, found again by their token."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from goodput.operator.local.errors import BusyError, StartError
from goodput.operator.local.lock import locked
from goodput.operator.local.processes import Child, end_stale, start
from goodput.operator.local.wake import Wake

STUBBORN = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\nsignal.pause()"
PARENT = (
    "import subprocess, sys\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
    "print(child.pid, flush=True)\n"
)


def launch(folder: Path, code: str, **environment: str) -> Child:
    return start([sys.executable, "-c", code], folder / "log", folder / "processes", {**os.environ, **environment})


def wrote(child: Child, log: Path) -> str:
    """The child's first line; only the child itself can say when it is there."""
    with Wake() as wake:
        while not log.read_text().endswith("\n"):
            assert not child.ended(), log.read_text()
            wake.wait(0.02)
    return log.read_text().strip()


def gone(pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        process.wait(timeout=20)
    except psutil.NoSuchProcess:
        return True
    return not process.is_running()


def test_a_child_that_ends_takes_its_group_along(tmp_path: Path) -> None:
    child = launch(tmp_path, PARENT)
    with Wake() as wake:
        while not child.ended():
            wake.wait(20)
    assert child.how == "ended with exit code 0"
    assert gone(int((tmp_path / "log").read_text()))
    assert list((tmp_path / "processes").iterdir()) == []


def test_sigkill_after_the_grace(tmp_path: Path) -> None:
    child = launch(tmp_path, STUBBORN)
    wrote(child, tmp_path / "log")
    child.stop(grace_seconds=0.0)
    assert child.stopping
    with Wake() as wake:
        while not child.ended():
            wake.wait(20)
    assert child.how == "was ended by SIGKILL"


def test_what_a_dead_driver_left_is_ended(tmp_path: Path) -> None:
    child = launch(tmp_path, STUBBORN)
    wrote(child, tmp_path / "log")
    assert end_stale(tmp_path / "processes", grace_seconds=0.5) == 1
    child.process.wait()
    assert gone(child.process.pid)
    assert list((tmp_path / "processes").iterdir()) == []


def test_a_process_that_only_has_the_number_is_left_alone(tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
    try:
        records = tmp_path / "processes"
        records.mkdir()
        (records / "x.json").write_text(json.dumps({"pid": stranger.pid, "token": "not its token"}))
        assert end_stale(records, grace_seconds=0.1) == 0
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_child_ends_with_its_driver(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal, sys\n"
        "from goodput.operator.local.processes import start\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "wait = [sys.executable, '-c', 'import signal; signal.pause()']\n"
        "print(start(wait, folder / 'log', folder / 'processes', dict(os.environ)).process.pid, flush=True)\n"
        "signal.pause()\n"
    )
    driver = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    child = int(driver.stdout.readline())
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    driver.stdout.close()
    assert gone(child)


def test_a_program_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    with pytest.raises(StartError, match="cannot be started"):
        start(["anything"], tmp_path / "log", tmp_path / "processes", {})


def test_one_holder_of_a_lock(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"), pytest.raises(BusyError, match=str(os.getpid())), locked(tmp_path / "lock"):
        pytest.fail("held twice")
    with locked(tmp_path / "lock"):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_signals_are_counted_and_the_old_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Wake() as wake:
        signal.raise_signal(signal.SIGINT)
        wake.wait(20)
        assert wake.stops == 1
    assert signal.getsignal(signal.SIGINT) is before
