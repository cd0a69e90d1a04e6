"""What a dataset's file holds, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass

from goodput.runner.errors import RunnerError
from goodput.runner.load.processes import Times
from goodput.runner.load.prompts import Messages, user_message


class DatasetError(RunnerError):
    """The dataset cannot be used; the message names the line and what to write there."""

    reason = "InvalidDataset"
    outcome = "failed"

    def __init__(self, place: str, problem: str, fix: str) -> None:
        super().__init__(f"{place}: {problem}; {fix}")


class DatasetUnreadableError(RunnerError):
    """The dataset's store did not give it; another attempt may."""

    reason = "DatasetUnreadable"


@dataclass(frozen=True, slots=True)
class Row:
    """One request: its prompt is a text, token ids, or a chat's messages.

    Attributes:
        output: its length in tokens, or the answer whose tokens are counted.
    """

    output: int | str
    text: str | None = None
    ids: tuple[int, ...] | None = None
    messages: Messages | None = None

    @property
    def chat(self) -> Messages:
        """The prompt as messages."""
        return self.messages if self.messages is not None else user_message(self.text or "")


@dataclass(frozen=True)
class Rows:
    """Requests of a file in its order; ``unusable`` ones (nothing to send, or no answer) are counted."""

    rows: tuple[Row, ...]
    unusable: int


@dataclass(frozen=True)
class Trace:
    """Times (ns from the first, ascending) and lengths in tokens of a trace's requests, in its order."""

    times_ns: Times
    prompt_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]
    unusable: int
