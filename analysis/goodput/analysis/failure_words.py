"""Says of a result whose requests did not complete that they did not, and why. Pure."""

from __future__ import annotations

from goodput.analysis.formats import per_cent
from goodput.analysis.metrics import most_frequent
from goodput.analysis.result import AnalysisResult
from goodput.analysis.tables import Row

SHOWN_RATIO = 0.01
"""Where more of a load point's requests did not complete, its state says so."""
MOST_RATIO = 0.5
"""Where more did not, the explanation of the verdict says so."""


def state(row: Row) -> str:
    """The state of a row of ``tables/goodput``: how the load went, and what became of requests and cells."""
    void = f", {row['void_cells']} void" if row["void_cells"] else ""
    return f"{_requests(row)}{void}"


def _requests(row: Row) -> str:
    attempted, known, reason = row["attempted"], row["load_state"], row["failure_reason"]
    if known is None:
        return "no valid cell" if reason is None else f"no valid cell: {reason}"
    missing = attempted - row["good"] - row["slow"]
    if attempted and missing == attempted:
        words = f"no request completed: {reason}"
        return f"saturated, {words}" if known == "saturated" else words
    if missing > SHOWN_RATIO * attempted:
        return f"{known}, {per_cent(missing / attempted)} not completed: {reason}"
    return str(known)


def nothing_completed(result: AnalysisResult) -> str | None:
    """The most frequent reason where no request of any cell completed, else None."""
    if any(cell.judgement.completed for cell in result.cells):
        return None
    return most_frequent(cell.failures for cell in result.cells)


def failed_loads(result: AnalysisResult) -> str | None:
    """A sentence where most requests of some load points did not complete, but not all of all."""
    failed = []
    for cells in result.measured.values():
        attempted = sum(cell.judgement.attempted for cell in cells)
        if attempted - sum(cell.judgement.completed for cell in cells) > MOST_RATIO * attempted:
            failed.append(cells)
    if not failed or nothing_completed(result) is not None:
        return None
    reason = most_frequent(cell.failures for cells in failed for cell in cells)
    return (
        f"Most requests of {len(failed)} of {len(result.measured)} pairs of config and load did not complete, "
        f"most often: {reason}."
    )
