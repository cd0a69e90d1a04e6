"""What each request of a cell asks for, made as it is sent: nothing of it is kept but lengths."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from goodput.analysis.schema.base import Endpoint
from goodput.runner.contract import PlannedLoad
from goodput.runner.load.asks import ROW_DATASETS, Asks
from goodput.runner.load.bodies import Entry
from goodput.runner.load.contents import Content, Contents
from goodput.runner.load.prompts import KnownIds, TextSource
from goodput.runner.load.schedule import Schedule, hashed_requests, schedule_sha256
from goodput.runner.tokens import Tokenizer
from goodput.runner.workload import Workload


class Requests:
    """The endless stream of a load's requests; none is ever taken again.

    Attributes:
        schedule_sha256: as the load client's.
        prompts_sha256: likewise, over lead-in and window.

    Raises:
        PromptError: prompts cannot be made.
    """

    def __init__(
        self, planned: PlannedLoad, schedule: Schedule | None, work: Workload, endpoint: Endpoint, words: Tokenizer
    ) -> None:
        self._work, self._words, self._chat = work, words, endpoint == "chat"
        self._contents = Contents(work.prompts, endpoint, planned.load)
        # Prompts of random ids share nothing, and an engine need not know them.
        self._alike = bool(planned.load.prefix_tokens) or planned.load.dataset in ROW_DATASETS or self._chat
        self._entries: list[Entry] = []
        self._hashed = hashed_requests(planned, schedule)
        digest = hashlib.sha256()
        for index in range(self._hashed):
            digest.update(self._make(index).digested)
        self.prompts_sha256 = digest.hexdigest()
        lengths = [(entry.prompt_tokens, entry.output_tokens) for entry in self._entries]
        self.schedule_sha256 = schedule_sha256(schedule, lengths)

    def take(self, index: int) -> tuple[int, int, Sequence[int] | None]:
        """Prompt and output tokens of the next request, and its ids where prompts may begin alike."""
        if index >= len(self._entries):
            if self._alike:
                self._make(index)
            else:
                self._note(*self._work.lengths.at(index), shared=0)
        entry = self._entries[index]
        ids = self._ids(entry.prompt_tokens, index) if self._alike else None
        return entry.prompt_tokens, entry.output_tokens, ids

    def prompt_tokens(self, request: int) -> int:
        """Asked length of the prompt."""
        return self._entries[request].prompt_tokens

    def output_tokens(self, request: int) -> int:
        """Asked length of the output."""
        return self._entries[request].output_tokens

    def asks(self) -> Asks:
        """All that was asked for so far."""
        return Asks(self._entries, len(self._entries))

    def _make(self, index: int) -> Content:
        prompt, output = self._work.lengths.at(index)
        made = self._contents.make(prompt, index)
        self._note(prompt, output, shared=made.shared)
        return made

    def _note(self, prompt: int, output: int, *, shared: int) -> None:
        self._entries.append(Entry(0, 0, 0, prompt, output, shared))

    def _ids(self, prompt_tokens: int, index: int) -> list[int]:
        source = self._work.prompts
        if self._chat and isinstance(source, TextSource) and not isinstance(source, KnownIds):
            return self._words.tokenize(messages=source.messages(prompt_tokens, index)) or []
        ids: list[int] = source.ids(prompt_tokens, index).tolist()
        return ids
