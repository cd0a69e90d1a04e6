"""What the cells of a trial send: prompts and lengths of each load point, from the vocabulary or a dataset."""

from __future__ import annotations

from dataclasses import dataclass

from goodput.runner.contract import PlannedLoad, TrialPlan
from goodput.runner.dataset.load import Dataset
from goodput.runner.dataset.rows import Trace
from goodput.runner.dataset.sample import SampledRows, TraceLengths, share
from goodput.runner.errors import TokensError
from goodput.runner.load.lengths import Lengths, PlannedLengths
from goodput.runner.load.processes import Times
from goodput.runner.load.prompts import Messages, PromptSource, SharedPrefixIds
from goodput.runner.load.schedule import draw
from goodput.runner.tokens import Tokenizer, Vocabulary

WARMUP_SHAPES = 4  # lengths of each load point that a warm-up uses, where they vary


@dataclass(frozen=True)
class Workload:
    """What a `LoadRun` needs besides plan and target.

    Attributes:
        prompts: content of each request.
        lengths: of each request.
        replayed: times of a trace at the planned speed, ns.
    """

    prompts: PromptSource
    lengths: Lengths
    replayed: Times | None = None


class Workloads:
    """Makes the workloads of a trial's load points, always the same ones.

    Args:
        plan: the trial's.
        vocabulary: of random prompts.
        dataset: None where all prompts are random.
        server: counts tokens.
    """

    def __init__(self, plan: TrialPlan, vocabulary: Vocabulary, dataset: Dataset | None, server: Tokenizer) -> None:
        self._plan, self._vocabulary, self._dataset, self._server = plan, vocabulary, dataset, server
        self._made: dict[str, Workload] = {}

    def of(self, planned: PlannedLoad) -> Workload:
        """The workload of a load point. Raises `PromptError` where nothing can be sent."""
        made = self._made.get(planned.load.id)
        if made is None:
            made = self._made[planned.load.id] = self._make(planned)
        return made

    def check(self) -> None:
        """Whether every replay has a trace that is long enough. Raises `ScheduleError`."""
        for planned in self._plan.loads:
            if planned.load.arrival == "replay":
                draw(planned, self.of(planned).replayed)

    def warmup_shapes(self) -> list[tuple[int, int]]:
        """Prompt and output lengths to warm up with: those of the first requests of each load point."""
        found = {self.of(planned).lengths.at(index) for planned in self._plan.loads for index in range(WARMUP_SHAPES)}
        return sorted(found)

    def _make(self, planned: PlannedLoad) -> Workload:
        load, seed, words = planned.load, planned.seed, self._vocabulary
        if self._dataset is None:
            lengths = PlannedLengths(load, seed, shortest=words.shortest)
            if load.prefix_groups is None or load.prefix_tokens is None:
                return Workload(words.prompts(seed), lengths)
            rest, prefixes = words.ids(seed), words.ids(seed, "prefixes")
            groups, tokens = load.prefix_groups, load.prefix_tokens
            return Workload(SharedPrefixIds(rest, prefixes, seed, groups=groups, tokens=tokens), lengths)
        content = self._dataset.content
        if isinstance(content, Trace):
            order_seed = None if load.arrival == "replay" else seed
            drawn = TraceLengths(content, load.max_tokens, seed=order_seed, shortest=words.shortest)
            return Workload(words.prompts(seed), drawn, drawn.times(load.speed) if load.speed is not None else None)
        part = [entry.load.id for entry in self._plan.loads].index(load.id)
        order = share(len(content.rows), self._plan.warmup_seed, part, len(self._plan.loads))
        chat = self._chat_ids if self._plan.endpoint == "chat" else None
        rows = SampledRows([content.rows[at] for at in order], self._ids, chat, load.max_tokens)
        return Workload(rows, rows)

    def _ids(self, text: str) -> list[int]:
        return _known(self._server.tokenize(prompt=text))

    def _chat_ids(self, messages: Messages) -> list[int]:
        return _known(self._server.tokenize(messages=messages))


def _known(ids: list[int] | None) -> list[int]:
    if ids is None:
        raise TokensError("the lengths of a dataset's texts need the server's /tokenize")
    return ids
