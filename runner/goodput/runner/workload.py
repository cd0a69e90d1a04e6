"""What a cell sends: prompts and lengths of its load point, from the vocabulary or a dataset."""

from __future__ import annotations

from dataclasses import dataclass

from goodput.runner.contract import PlannedLoad
from goodput.runner.load.lengths import Lengths, PlannedLengths
from goodput.runner.load.processes import Times
from goodput.runner.load.prompts import PromptSource, SharedPrefixIds
from goodput.runner.tokens import Vocabulary


@dataclass(frozen=True)
class Workload:
    """What a `LoadRun` needs besides plan and target.

    Attributes:
        prompts: content of each request.
        lengths: of each request.
        replayed: times of a trace at the planned speed, ns.
        unique_prompts: from this request on prompts repeat; None: they never do.
    """

    prompts: PromptSource
    lengths: Lengths
    replayed: Times | None = None
    unique_prompts: int | None = None


def random_workload(vocabulary: Vocabulary, planned: PlannedLoad) -> Workload:
    """Random ids with the lengths that the load names."""
    load, seed = planned.load, planned.seed
    prompts = vocabulary.prompts(seed)
    if load.prefix_groups is not None and load.prefix_tokens is not None:
        prefixes = vocabulary.ids(seed, "prefixes")
        prompts = SharedPrefixIds(
            vocabulary.ids(seed), prefixes, seed, groups=load.prefix_groups, tokens=load.prefix_tokens
        )
    return Workload(prompts, PlannedLengths(load, seed, shortest=vocabulary.shortest))
