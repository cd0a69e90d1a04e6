"""Do two configs answer the same? Shares of identical continuations, against the reference config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from goodput.analysis.cells import Cell
from goodput.analysis.schema.cell import Outputs


@dataclass(frozen=True)
class Equality:
    """How a config's continuations compare with the reference's: of the same block, else of its first one.

    Attributes:
        compared: pairs of continuations of one prompt, in one form (ids or text) and not both empty.
        identical: of them, those equal to the last token.
        same_tokens_mean: tokens (where there are only texts: characters) before the first difference, mean.
    """

    compared: int
    identical: int
    same_tokens_mean: float

    @property
    def ratio(self) -> float:
        """Share of identical continuations."""
        return self.identical / self.compared


def equality(cells: Iterable[Cell], reference: str) -> dict[str, Equality]:
    """Config → equality. The reference is compared with its own first block: whether starts alone make a difference.

    Configs without a continuation that can be compared are not there.
    """
    trials: dict[str, dict[str, Outputs]] = {}
    for cell in cells:
        if cell.document.outputs is not None:
            trials.setdefault(cell.document.key.config, {}).setdefault(cell.document.key.block, cell.document.outputs)
    known = trials.get(reference, {})
    found: dict[str, Equality] = {}
    for config, blocks in trials.items():
        pairs = list(_pairs(blocks, known, itself=config == reference))
        if pairs:
            lengths = [_same(mine, theirs) for mine, theirs in pairs]
            same = sum(mine == theirs for mine, theirs in pairs)
            found[config] = Equality(len(pairs), same, sum(lengths) / len(lengths))
    return found


def _pairs(
    blocks: Mapping[str, Outputs], known: Mapping[str, Outputs], *, itself: bool
) -> Iterable[tuple[Sequence[object], Sequence[object]]]:
    if not known:
        return
    first = min(known)
    for block, outputs in blocks.items():
        other = known[first] if itself else known.get(block, known[first])
        if other is not outputs and other.prompts_sha256 == outputs.prompts_sha256:
            pairs = zip(outputs.continuations, other.continuations, strict=True)
            yield from (pair for pair in pairs if _comparable(*pair))


def _comparable(mine: Sequence[object], theirs: Sequence[object]) -> bool:
    """Two empty answers say nothing of the model; ids and text are never equal, whatever was answered."""
    return bool(mine or theirs) and isinstance(mine, str) == isinstance(theirs, str)


def _same(mine: Sequence[object], theirs: Sequence[object]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, theirs, strict=False)))
