"""A child's port: nobody else is given it before the child listens, and what answers there is the child."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from goodput.operator.local.ports import HOST, Port

NOBODY = 2**30  # above all numbers of processes
LISTEN = (
    "import socket, signal, sys\n"
    "server = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET)\n"
    "server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
    "server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n"
    "server.bind((sys.argv[1], int(sys.argv[2])))\n"
    "server.listen()\n"
    "print(flush=True)\n"
    "signal.pause()\n"
)


@pytest.fixture
def port() -> Iterator[Port]:
    made = Port()
    yield made
    made.release()


WRAPPED = (
    "import subprocess, sys\n"
    "with subprocess.Popen(sys.argv[1:], start_new_session=True) as server:\n"
    "    print(server.pid, flush=True)\n"
)


@contextmanager
def listener(port: Port, address: str = HOST) -> Iterator[int]:
    """A process of a group of its own that listens there; as vLLM does, with SO_REUSEADDR and SO_REUSEPORT."""
    command = [sys.executable, "-I", "-S", "-c", LISTEN, address, str(port.number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline(), "it does not listen"
            yield process.pid
        finally:
            process.kill()


def test_a_held_port_is_refused_to_others_and_open_to_a_server(port: Port) -> None:
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((HOST, port.number))
    with listener(port) as group, socket.create_connection((HOST, port.number)):
        assert port.stranger(group) is None


def test_a_released_port_is_free_again(port: Port) -> None:
    port.release()
    with socket.socket() as other:
        other.bind((HOST, port.number))


def test_the_listener_of_another_group_is_a_stranger(port: Port) -> None:
    with listener(port) as pid:
        assert port.stranger(NOBODY) == f"another process, {psutil.Process(pid).name()} ({pid})"


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "::ffff:127.0.0.1"])
def test_a_server_may_listen_at_all_addresses_and_a_stranger_there_is_one(port: Port, address: str) -> None:
    with listener(port, address) as pid:
        assert port.stranger(pid) is None
        assert port.stranger(NOBODY) == f"another process, {psutil.Process(pid).name()} ({pid})"


def test_who_listens_here_alone_comes_before_who_listens_at_all_addresses(port: Port) -> None:
    with listener(port, "0.0.0.0") as everywhere, listener(port) as here:
        assert port.stranger(here) is None
        assert port.stranger(everywhere) is not None


def test_a_script_may_start_its_server_in_another_session(port: Port) -> None:
    server = [sys.executable, "-I", "-S", "-c", LISTEN, HOST, str(port.number)]
    wrapper = [sys.executable, "-I", "-S", "-c", WRAPPED, *server]
    with subprocess.Popen(wrapper, stdout=subprocess.PIPE, start_new_session=True) as script:
        assert script.stdout is not None
        said = [script.stdout.readline().strip() for _ in range(2)]
        pid = int(next(filter(None, said)))
        try:
            assert os.getsid(pid) != script.pid
            assert port.stranger(script.pid) is None
        finally:
            os.kill(pid, signal.SIGKILL)


def test_nobody_listens(port: Port) -> None:
    assert port.stranger(NOBODY) is not None
