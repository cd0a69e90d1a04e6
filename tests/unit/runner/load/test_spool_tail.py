from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goodput.runner.load.errors import SpoolError
from goodput.runner.load.spool import HEADER, READ_KERNEL, READ_USER, STAMP, Record, SpoolTail, header, read_spool

WHOLE = [(1, READ_USER, 5, b"first"), (2, READ_USER, 6, b""), (1, READ_USER, 7, b"x" * 300)]


def packed(records: list[Record]) -> bytes:
    return b"".join(header(request, len(body), kind, stamp) + body for request, kind, stamp, body in records)


@given(cuts=st.lists(st.integers(0, len(packed(WHOLE))), max_size=6))
def test_a_growing_spool_gives_each_record_once_it_is_whole(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    data, path = packed(WHOLE), tmp_path_factory.mktemp("spool") / "spool-0.bin"
    path.write_bytes(b"")
    seen: list[Record] = []
    with SpoolTail(path, 0) as tail, path.open("ab", buffering=0) as file:
        for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(data)], strict=True):
            file.write(data[begin:end])
            while records := tail.block():
                seen += records
    assert seen == WHOLE
    assert list(read_spool(path, 0)) == WHOLE


def test_kernel_stamps_are_placed_on_the_monotonic_clock(tmp_path: Path) -> None:
    path = tmp_path / "spool-0.bin"
    path.write_bytes(HEADER.pack(3, 1, READ_KERNEL, STAMP.pack(2, 7)) + b"a")
    assert list(read_spool(path, 1_000_000_000)) == [(3, READ_KERNEL, 1_000_000_007, b"a")]


def test_a_length_that_cannot_be_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "spool-0.bin"
    path.write_bytes(HEADER.pack(3, 1 << 30, READ_USER, STAMP.pack(0, 7)))
    with pytest.raises(SpoolError, match="spool-0"):
        list(read_spool(path, 0))
