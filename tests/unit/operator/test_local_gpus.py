"""The next server waits for the memory of its GPUs, with an end, and a reason that is tried again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx

from goodput.operator.local.errors import StartError
from goodput.operator.local.gpus import Gpu
from goodput.operator.local.gpuwait import DEADLINE_SECONDS, LOOK_SECONDS, GpuWait
from goodput.operator.local.layout import TrialFolder
from goodput.operator.local.ports import Port
from goodput.operator.local.servers import LocalServer
from goodput.operator.reasons import kind


class Machine:
    """GPUs whose memory and clock the test sets."""

    def __init__(self, *used: float) -> None:
        self.used = list(used)
        self.now = 0.0
        self.looks = 0
        self.started = 0

    def look(self) -> tuple[Gpu, ...]:
        self.looks += 1
        return tuple(Gpu(str(n), f"GPU-{n}", "H100", 81559, used, "570.1") for n, used in enumerate(self.used))

    def wait(self, count: int = 1, before: dict[str, float] | None = None) -> GpuWait:
        return GpuWait({"GPU-0": 10.0} if before is None else before, count, self.look, lambda: self.now)

    def server(self, wait: GpuWait, folder: Path) -> LocalServer:
        def launch() -> Any:
            self.started += 1
            raise StartError("vllm is not installed here")

        port = Port()
        port.release()
        return LocalServer(TrialFolder(folder), port, time.time(), None, httpx.Client(), wait=wait, launch=launch)


def test_memory_that_is_free_again_lets_the_server_start(tmp_path: Path) -> None:
    machine = Machine(70_000.0)
    server = machine.server(machine.wait(), tmp_path)
    seen = server.look()
    assert seen is not None
    assert (seen.state, seen.failure, machine.started) == ("pending", None, 0)
    assert seen.waiting is not None
    assert (seen.waiting.reason, seen.running) == ("GpuMemoryBusy", None)
    assert seen.waiting.message == "GPU 0 has 70000 MiB in use, 10 before the first server"
    machine.used, machine.now = [15.0], LOOK_SECONDS
    seen = server.look()
    assert machine.started == 1
    assert seen is not None
    assert seen.failure is not None
    assert seen.failure.message == "vllm is not installed here"
    server.look()
    assert machine.started == 1, "it is started once"


def test_memory_that_stays_held_ends_in_a_reason_that_is_tried_again(tmp_path: Path) -> None:
    machine = Machine(70_000.0)
    server = machine.server(machine.wait(), tmp_path)
    server.look()
    machine.now = DEADLINE_SECONDS
    seen = server.look()
    assert seen is not None
    assert seen.failure is not None
    assert (seen.state, seen.failure.reason, machine.started) == ("ended", "GpuMemoryBusy", 0)
    assert kind("GpuMemoryBusy") == "transient"


def test_what_others_held_before_is_not_waited_for() -> None:
    machine = Machine(40_000.0, 0.0)
    assert machine.wait(before={"GPU-0": 40_000.0}).busy() is None
    assert machine.wait(before={}).busy() is not None


def test_only_the_servers_own_gpus_count_and_none_is_no_wait() -> None:
    machine = Machine(0.0, 70_000.0)
    assert machine.wait(1).busy() is None
    assert machine.wait(2).busy() is not None
    assert Machine().wait(1).busy() is None
    assert machine.wait(0).busy() is None


def test_the_gpus_are_not_asked_at_every_look() -> None:
    machine = Machine(70_000.0)
    wait = machine.wait()
    for _ in range(20):
        wait.busy()
        machine.now += LOOK_SECONDS / 10
    assert machine.looks <= 3


def test_a_server_that_is_told_to_go_while_it_waits_is_gone(tmp_path: Path) -> None:
    machine = Machine(70_000.0)
    server = machine.server(machine.wait(), tmp_path)
    server.look()
    server.stop()
    assert server.look() is None
    assert machine.started == 0


def test_without_gpus_nothing_is_asked() -> None:
    machine = Machine(70_000.0)
    machine.wait(0).busy()
    assert machine.looks == 0
