"""What the API needs to know of an engine: its tokenizer, its requests, and where their tokens go."""

from collections.abc import Sequence
from typing import Protocol

#: Finish reasons in vLLM's order; also the label values of `vllm:request_success_total`.
FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")


class Tokenizer(Protocol):
    """Text to token ids and back."""

    @property
    def vocab_size(self) -> int:
        """Ids are below this."""

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Ids of a text."""

    def encode_chat(self, messages: Sequence[tuple[str, str]], *, generation_prompt: bool = True) -> list[int]:
        """Ids of (role, content) messages in the model's chat template."""

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids."""


class Request(Protocol):
    """A request with its progress. Stamps are in nanoseconds on the engine's clock, -1 where not reached."""

    @property
    def num_prompt_tokens(self) -> int:
        """Prompt length in tokens."""

    @property
    def num_output_tokens(self) -> int:
        """Tokens generated so far."""

    @property
    def output_token_ids(self) -> Sequence[int]:
        """Those tokens."""

    @property
    def max_tokens(self) -> int:
        """The limit on the output that was asked for, after the model length."""

    @property
    def finish_reason(self) -> str | None:
        """One of `FINISH_REASONS`; None until the last token."""

    @property
    def arrival_ns(self) -> int:
        """It reached the engine."""

    @property
    def scheduled_ns(self) -> int:
        """The engine began to work on it."""

    @property
    def first_token_ns(self) -> int:
        """Its first token."""

    @property
    def last_token_ns(self) -> int:
        """Its newest token."""


class Sink(Protocol):
    """Where a request's tokens go."""

    def token(self, request: Request) -> None:
        """One more token; `finish_reason` is set with the last. Must not block or raise."""

    def aborted(self) -> None:
        """The engine gave the request up: no more tokens."""


class Texts(Protocol):
    """The text of one stream's tokens."""

    def of(self, tokens: Sequence[int]) -> bytes:
        """What these tokens add to the text, as a JSON string. Called once for each token, in order."""
