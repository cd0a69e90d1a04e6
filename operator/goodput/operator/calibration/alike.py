"""A profile is of one model on one kind of server: whether all cells of a sweep are. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from goodput.analysis.schema.cell import CellDocument
from goodput.analysis.schema.sweep import SpecDocument
from goodput.operator.spec.flagtable import table


def differences(spec: SpecDocument, documents: Iterable[CellDocument]) -> Iterator[str]:
    """What the cells differ in that no profile has a cost for, in words."""
    known = [document.provenance for document in documents]
    modelled = table("simulated").kinds
    swept = {flag for config in spec.configs for flag in config.swept if flag not in modelled}
    found = {
        "engines": {config.engine for config in spec.configs},
        "GPUs for each server": {str(config.gpus) for config in spec.configs},
        "models": {each.model for each in known if each.model},
        "kinds of GPU": {each.gpu for each in known if each.gpu},
    }
    for what, values in found.items():
        if len(values) > 1:
            yield f"{len(values)} {what} ({', '.join(sorted(values))})"
    if swept:
        yield f"several values of {', '.join(sorted(swept))}"
