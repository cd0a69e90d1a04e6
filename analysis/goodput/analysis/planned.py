"""Every planned cell has exactly one state: what was not run is never hidden. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from goodput.analysis.read import VoidAttempt
from goodput.analysis.schema.base import CellState
from goodput.analysis.schema.planned import CellKey
from goodput.analysis.schema.sweep import CellWithoutResult, SpecDocument

_SENTINEL = re.compile(r"s\d+")


@dataclass(frozen=True)
class PlannedCell:
    """A planned cell, what became of it, and why where it was not measured. ``voids``: attempts that do not count."""

    key: CellKey
    state: CellState
    reason: str | None
    voids: int

    @property
    def sentinel(self) -> bool:
        """Measured to watch for drift; never pooled with the other blocks."""
        return is_sentinel(self.key.block)


def is_sentinel(block: str) -> bool:
    """Whether a block id (``s00``, ``s01``, …) is a sentinel's."""
    return _SENTINEL.fullmatch(block) is not None


def block_order(block: str) -> tuple[int, str]:
    """Sort key of block ids: by number."""
    return len(block), block


def planned_cells(
    spec: SpecDocument,
    results: Collection[CellKey],
    voids: Iterable[VoidAttempt],
    without: Iterable[CellWithoutResult],
) -> tuple[PlannedCell, ...]:
    """All cells of the plan, and what was measured beyond it, by config, load and block.

    A result says more than the driver's list, and the driver's ``failed`` or ``pruned`` more than a void commit;
    a void commit more than ``not_run``.
    """
    told = {(cell.config, cell.load, cell.block): cell for cell in without}
    void: dict[CellKey, list[VoidAttempt]] = {}
    for attempt in voids:
        void.setdefault(attempt.key, []).append(attempt)
    keys = _planned_keys(spec)
    known = set(keys)
    keys += sorted((key for key in {*results, *void} if key not in known), key=lambda key: key.prefix)
    return tuple(
        _state(key, key in results, void.get(key, []), told.get((key.config, key.load, key.block))) for key in keys
    )


def _planned_keys(spec: SpecDocument) -> list[CellKey]:
    return [
        CellKey(config=config.id, load=load.id, block=block)
        for config in spec.configs
        for load in spec.loads
        for block in (*spec.blocks, *(spec.sentinels if config.id == spec.reference else ()))
    ]


def _state(key: CellKey, measured: bool, voids: list[VoidAttempt], told: CellWithoutResult | None) -> PlannedCell:
    if measured:
        return PlannedCell(key, "measured", None, len(voids))
    if told is not None and (told.state != "not_run" or not voids):
        return PlannedCell(key, told.state, told.reason, len(voids))
    if voids:
        return PlannedCell(key, "void", voids[-1].reason, len(voids))
    return PlannedCell(key, "not_run", "NotReached", 0)
