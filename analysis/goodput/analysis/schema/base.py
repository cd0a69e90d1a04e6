"""The documents that are stored or handed from part to part, with their versions (`v`).

Every document is a frozen, strict pydantic model: an unknown field is an error, not a surprise later.
Times are seconds, rates are per second, shares are ratios in 0..1. ``None`` means "not known" or "not
applicable"; it is never written as 0.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1
PRIME = "prime"
"""Block id of the starts that fill the compile cache: they measure nothing."""

Evidence = Literal["measured", "synthetic"]
LoadState = Literal["stable", "saturated", "not_judged"]
CellOutcome = Literal["valid", "void"]
CellState = Literal["measured", "void", "failed", "pruned", "not_run"]
RequestOutcome = Literal["completed", "failed", "incomplete", "not_sent"]
Arrival = Literal["poisson", "constant", "gamma", "burst", "replay", "closed"]
Dataset = Literal["random", "sharegpt", "jsonl", "trace"]
LengthDistribution = Literal["uniform", "normal", "lognormal"]
Endpoint = Literal["completions", "chat"]
Verdict = Literal["winner", "tie", "undecided", "infeasible", "drift"]
Positive = Annotated[float, Field(gt=0)]


class Document(BaseModel):
    """Base of all stored documents: frozen, and nothing unknown is let in."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="null")

    def to_json(self) -> bytes:
        """The stored bytes."""
        return self.model_dump_json(indent=1).encode() + b"\n"
