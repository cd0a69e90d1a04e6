"""What makes an attempt final, and which attempt is the cell's result."""

from __future__ import annotations

from typing import Literal

from goodput.analysis.schema.base import CellOutcome, Document
from goodput.analysis.schema.planned import CellKey


class CommittedFile(Document):
    """One file of a commit."""

    sha256: str
    size: int
    rows: int | None = None


class Commit(Document):
    """``_COMMIT.json``: create-only, the last file of an attempt's folder; what has none is ignored."""

    v: Literal[1] = 1
    key: CellKey
    attempt: int
    outcome: CellOutcome
    reason: str | None = None
    files: dict[str, CommittedFile]


class Result(Document):
    """``_RESULT.json``: create-only, names the one valid attempt of a cell."""

    v: Literal[1] = 1
    key: CellKey
    attempt: int
    commit_sha256: str
