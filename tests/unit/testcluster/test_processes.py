"""Whose process a pid file names."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from testcluster import processes
from testcluster.processes import Identity

SLEEPER = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(SLEEPER) as child:
        yield child
        child.kill()


@pytest.fixture
def who(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> Identity:
    return processes.write_pid_file(tmp_path / "sleeper.pid", sleeper.pid, SLEEPER)


def test_a_pid_file_gives_back_the_same_living_process(who: Identity, tmp_path: Path) -> None:
    assert processes.read_pid_file(tmp_path / "sleeper.pid") == who
    assert processes.is_alive(who)


@pytest.mark.parametrize("other", [{"start_ticks": 1}, {"boot_id": "another boot"}, {"argv": ("etcd",)}])
def test_a_stranger_under_the_number_is_not_taken_for_ours_and_not_signalled(
    who: Identity, sleeper: subprocess.Popen[bytes], other: dict[str, object]
) -> None:
    stranger = replace(who, **other)  # type: ignore[arg-type]
    assert not processes.is_alive(stranger)
    assert not processes.send(stranger, signal.SIGKILL)
    processes.stop(stranger, grace_s=0.0)
    assert sleeper.poll() is None


def test_stop_ends_the_process_and_is_harmless_the_second_time(who: Identity) -> None:
    processes.stop(who, grace_s=10.0)
    assert not processes.is_alive(who)
    processes.stop(who, grace_s=10.0)


def test_stop_kills_what_ignores_the_request(tmp_path: Path) -> None:
    code = "import signal; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
    argv = [sys.executable, "-c", code]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        processes.stop(processes.write_pid_file(tmp_path / "deaf.pid", child.pid, argv), grace_s=0.1)
        assert child.wait() == -signal.SIGKILL or child.returncode == 0  # reaped by stop, or here


def test_an_ended_process_that_nobody_waited_for_counts_as_gone(
    who: Identity, sleeper: subprocess.Popen[bytes]
) -> None:
    sleeper.kill()
    processes.wait_gone(sleeper.pid, 10.0)
    assert not processes.is_alive(who)


@pytest.mark.parametrize("text", ["", "123", "{}", '{"pid": 1}', "[1]"])
def test_a_broken_pid_file_names_nobody(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.pid"
    path.write_text(text)
    assert processes.read_pid_file(path) is None
    assert processes.read_pid_file(tmp_path / "missing.pid") is None


def test_processes_are_found_by_program_and_folder(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import signal; signal.pause()", f"--data={tmp_path}/etcd"]
    with subprocess.Popen(argv) as child:
        try:
            name = frozenset({Path(sys.executable).name})
            assert [item.pid for item in processes.ours(name, tmp_path)] == [child.pid]
            assert processes.ours(name, tmp_path.with_name("another")) == []
            assert processes.ours(frozenset({"etcd"}), tmp_path) == []
        finally:
            child.kill()


def test_a_pid_file_is_plain_json(who: Identity, tmp_path: Path) -> None:
    data = json.loads((tmp_path / "sleeper.pid").read_text())
    assert data == {**asdict(who), "argv": list(who.argv)}
    assert data["pid"] != os.getpid()
