"""Samples of the server's metrics while a cell runs: one thread, one absolute schedule, one file."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from goodput.analysis.schema.base import Document
from goodput.runner.errors import ServerGoneError
from goodput.runner.snapshot import Snapshot

INTERVAL_SECONDS = 0.5
_AnyDocument = TypeVar("_AnyDocument", bound=Document)


class Scraper:
    """Takes a snapshot every ``interval_seconds`` between `start` and `stop`.

    A scrape that fails leaves a gap; the samples are appended to ``file``, one JSON document per line.
    """

    def __init__(self, read: Callable[[], Document], file: Path, interval_seconds: float = INTERVAL_SECONDS) -> None:
        self._read = read
        self._file = file
        self._interval_seconds = interval_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scrape", daemon=True)

    def start(self) -> None:
        """Begin sampling."""
        self._thread.start()

    def stop(self) -> None:
        """End sampling; returns when the last sample is in the file."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        _give_way()
        due = time.monotonic()
        with self._file.open("a", encoding="utf-8") as file:
            while not self._stop.wait(max(0.0, due - time.monotonic())):
                try:
                    file.write(self._read().model_dump_json(exclude_none=True) + "\n")
                    file.flush()
                except ServerGoneError:
                    pass  # a gap: `columns` sees it in the stamps
                due = max(due + self._interval_seconds, time.monotonic())


def _give_way() -> None:
    """Let the load client run first: parsing a page of metrics takes 10 to 20 ms of CPU, a send may not wait for it.

    Any process may lower its own threads; where the platform cannot, the order stays as it is.
    """
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # 0: this thread


def samples(file: Path) -> tuple[Snapshot, ...]:
    """What a scraper of snapshots wrote."""
    return documents(file, Snapshot)


def documents(file: Path, kind: type[_AnyDocument]) -> tuple[_AnyDocument, ...]:
    """What a scraper wrote, in order. A line that a crash cut short is left out."""
    if not file.exists():
        return ()
    lines = file.read_text(encoding="utf-8").split("\n")
    return tuple(kind.model_validate_json(line) for line in lines[:-1] if line)
