"""A child's port: nobody else is given it before the child listens, and what answers there is the child."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from goodput.operator.local.ports import HOST, Port

LISTEN = (
    "import socket, signal, sys\n"
    "server = socket.socket()\n"
    "server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
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


@contextmanager
def listener(port: Port, address: str = HOST) -> Iterator[int]:
    """A process of a group of its own that listens there; as a server does, with SO_REUSEADDR."""
    command = [sys.executable, "-I", "-S", "-c", LISTEN, address, str(port.number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
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
        assert port.stranger(os.getpgid(0)) == f"another process, {psutil.Process(pid).name()} ({pid})"


def test_what_listens_at_all_addresses_is_no_child(port: Port) -> None:
    with listener(port, "") as group:
        assert port.stranger(group) == "another process, at all addresses of this machine"


def test_nobody_listens(port: Port) -> None:
    assert port.stranger(os.getpgid(0)) is not None
