"""Makes a long cell out of a short one that a worker recorded: the same bytes again, later, as other requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from goodput.runner.load.job import BODIES, CELL, ENTRIES, LIVE, End, Job, sent_file, spool_file
from goodput.runner.load.spool import HEADER, SENT, STAMP, read_spool

_SECOND = 1_000_000_000
_STAMP_AT = HEADER.size - STAMP.size
_SENT_TYPE = np.dtype([("request", "<u4"), ("planned", "<i8"), ("sent", "<i8")])
Bytes = NDArray[np.uint8]


def replicate(source: Path, target: Path, copies: int) -> None:
    """Write ``copies`` times a cell of one worker, a closed loop, into a new folder.

    Copy k has its request numbers and times moved by k cells; nothing else differs. The window covers all.
    """
    target.mkdir(parents=True)
    job, end = Job.read(source), End.read(source, 0)
    if end is None or job.processes != 1 or job.concurrency is None:
        raise ValueError("one worker's closed loop that has ended is needed")
    period = end.ended_ns // _SECOND + 1  # whole seconds: the kernel's stamps have seconds of their own
    sent = np.fromfile(source / sent_file(0), dtype=_SENT_TYPE)
    requests = int(sent["request"].max()) + 1
    for name in (CELL, LIVE, BODIES, ENTRIES):
        (target / name).write_bytes((source / name).read_bytes())
    _spool(source / spool_file(0), target / spool_file(0), copies, requests, period)
    with (target / sent_file(0)).open("wb") as file:
        for number in range(copies):
            moved = sent.copy()
            moved["request"] += number * requests
            moved["planned"] += number * period * _SECOND
            moved["sent"][sent["sent"] >= 0] += number * period * _SECOND
            file.write(moved.tobytes())
    ended = end.ended_ns + (copies - 1) * period * _SECOND
    replace(job, window_ns=ended, window_requests=None).write(target)
    replace(end, ended_ns=ended).write(target, 0)


def _spool(source: Path, target: Path, copies: int, requests: int, period: int) -> None:
    data: Bytes = np.fromfile(source, dtype=np.uint8)
    at = np.array(_headers(source), dtype=np.int64)
    numbers = _field(data, at, 4).view("<u4")[:, 0]
    seconds = _field(data, at + _STAMP_AT, 8).view("<i8")[:, 0]
    nanoseconds = _field(data, at + _STAMP_AT + 8, 8).view("<i8")[:, 0]
    kernel = seconds > 0
    with target.open("wb") as file:
        for number in range(copies):
            moved = data.copy()
            _write(moved, at, (numbers + number * requests).astype("<u4"))
            _write(moved, at + _STAMP_AT, np.where(kernel, seconds + number * period, 0).astype("<i8"))
            later = nanoseconds + number * period * _SECOND
            _write(moved, at + _STAMP_AT + 8, np.where(kernel, nanoseconds, later).astype("<i8"))
            file.write(moved.tobytes())


def _headers(path: Path) -> list[int]:
    """Where the records begin."""
    found, at = [], 0
    for _, _, _, body in read_spool(path, 0):
        found.append(at)
        at += HEADER.size + len(body)
    return found


def _field(data: Bytes, at: NDArray[np.int64], size: int) -> Bytes:
    return np.ascontiguousarray(data[at[:, None] + np.arange(size)])


def _write(data: Bytes, at: NDArray[np.int64], values: NDArray[np.generic]) -> None:
    size = values.dtype.itemsize
    data[at[:, None] + np.arange(size)] = np.ascontiguousarray(values).view(np.uint8).reshape(-1, size)


assert SENT.size == _SENT_TYPE.itemsize
