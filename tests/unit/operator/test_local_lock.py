"""A folder's lock: one writer at a time, and none where the file system has no such locks."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from goodput.operator.local.errors import BusyError
from goodput.operator.local.lock import locked_folder


def test_a_folder_has_one_writer_at_a_time(tmp_path: Path) -> None:
    with locked_folder(tmp_path), pytest.raises(BusyError, match="another process writes to"), locked_folder(tmp_path):
        pytest.fail("there are two")
    with locked_folder(tmp_path):
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_folder_that_cannot_be_locked_is_written_all_the_same(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_handle: int, _operation: int) -> None:  # as NFS does of a folder
        raise OSError(number, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refused)
    with locked_folder(tmp_path):
        (tmp_path / "written").touch()
