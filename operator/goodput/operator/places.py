"""Where a sweep can run: what is wrong everywhere, and what only one machine or only a cluster refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from goodput.operator.local.refusals import local_problems
from goodput.operator.spec.errors import Problem, SpecError
from goodput.operator.spec.resolve import resolve
from goodput.operator.sweep import Sweep

_ANY_UID = "00000000"


def problems(sweep: Sweep) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """What keeps a resolved sweep from running anywhere, and what keeps it from running on this machine."""
    everywhere: tuple[Problem, ...] = ()
    here = tuple(local_problems(sweep))
    if sweep.evidence == "synthetic":
        from goodput.operator.virtual.engines import profile_problems  # noqa: PLC0415  # engines, wanted here alone

        everywhere, unread = profile_problems(sweep)
        here += unread
    return everywhere, here


def notes(document: Mapping[str, Any], sweep: Sweep) -> Iterator[str]:
    """Where a sweep whose results go to an object store cannot run, and why; it may run elsewhere.

    Raises:
        SpecError: it can run nowhere. One whose results are files runs on one machine or not at all.
    """
    everywhere, here = problems(sweep)
    local = sweep.spec.results.uri.startswith("file://")
    if everywhere or (local and here):
        raise SpecError((*everywhere, *here))
    if not local:
        yield from (f"cannot run on this machine: {problem}" for problem in here)
        yield from (f"cannot run in a cluster: {problem}" for problem in _cluster_problems(document))


def _cluster_problems(document: Mapping[str, Any]) -> tuple[Problem, ...]:
    try:
        resolve(document, uid=_ANY_UID)
    except SpecError as error:
        return error.problems
    return ()
